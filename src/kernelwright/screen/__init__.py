"""What a candidate's structure may not do, decided on its text before anything is built.

Screening is the first of several walls, and the only one that can say *why* in one sentence. It knows nothing of runs:
what only a run can show (a result that is right by luck, work moved elsewhere, undefined behaviour) is for the verifier.
Each rule is a function in one of the modules below and each list is in `names`; `_RULES` is the order in which a
candidate meets them. Files around the region are read where they are given, because a harness lies in headers too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kernelwright.screen import assembly, buffers, calls, definitions, launches, library, lifetime, members, shape
from kernelwright.screen.context import Change, Finding, change
from kernelwright.screen.text import Code
from kernelwright.screen.variants import variants
from kernelwright.source import Span, splice, to_lf

MAX_TEXT = 60_000
"""Characters of a region's new text, where the original has not half as many; a longer one is refused unread."""

_RULES: tuple[Callable[[Change], Iterator[Finding]], ...] = (
    shape.spelled_plainly,
    shape.balanced,
    shape.nests_moderately,
    shape.directives_from_the_lists,
    shape.conditions_whole,
    calls.refused_names,
    calls.macros_of_the_outside,
    assembly.inline_assembly,
    assembly.attributes,
    shape.readable,
    lifetime.statics_are_seen,
    lifetime.storage_ends_with_the_call,
    lifetime.nothing_mutable_in_constants,
    lifetime.constants_stay_constant,
    definitions.keeps_what_is_used_outside,
    definitions.takes_no_name_of_the_outside,
    definitions.defines_the_functions_it_declares,
    definitions.links_nothing_in,
    library.library_functions_only_compute,
    calls.device_calls,
    launches.waits_as_the_original_does,
    launches.launches_in_the_same_stream,
    launches.asks_nothing_between_launches,
    launches.finds_no_marks_in_attributes,
    calls.touches_only_what_the_original_touches,
    calls.changes_only_what_the_original_changes,
    members.names_members_as_the_original_does,
    calls.calls_helpers_only,
    calls.addresses_are_not_written_as_numbers,
    shape.jumps_stay_inside,
    buffers.reads_and_writes_as_the_original_does,
)
_A_COMPILER_KNOWS = (shape.balanced, shape.readable, library.library_functions_only_compute)
"""Rules that also say no to what is no program at all: a missing brace, a name that nobody declares."""


@dataclass(frozen=True)
class Refusal:
    """Why a candidate is refused; as text, one sentence."""

    region: str
    line: int
    """1-based line of the region's new text."""
    what: str
    advice: str
    unreadable: bool = False
    """Whether the text may be no C++ at all: then a compiler says better what is wrong with it."""

    def __str__(self) -> str:
        return f"region {self.region!r}, line {self.line}: {self.what}; {self.advice}"


def screen(
    language: str,
    original_file: bytes,
    candidate_file: bytes,
    regions: Sequence[tuple[Span, str]],
    others: Iterable[bytes] = (),
    elsewhere: Iterable[str] = (),
) -> Refusal | None:
    """The first reason to refuse a candidate's texts for regions of one file, or None.

    The files are whole and as they lie on disk, before and after; `regions` gives the new text of each region in them.
    `others` are further files of the repository that the region's translation units read (headers, mostly): what is
    declared there belongs to the harness as much as what stands in the file itself. `elsewhere` are the candidate's texts
    for regions of other files.
    """
    ordered = sorted(regions, key=lambda pair: pair[0].start)
    if splice(original_file, dict(ordered)) != candidate_file:
        return Refusal(ordered[0][0].region if ordered else "", 1, "the file differs outside its regions",
                       "change the regions' text only")  # fmt: skip
    for span, text in ordered:
        if len(text) > (most := max(MAX_TEXT, 2 * len(span.text))):
            return Refusal(span.region, 1, f"its text has {len(text)} characters", f"stay below {most}")
    around = [Code(to_lf(data), language) for data in others]
    texts = {span.region: Code(text.replace("\r\n", "\n"), language) for span, text in ordered}
    far = [Code(text.replace("\r\n", "\n"), language) for text in elsewhere]
    for span, text in ordered:
        new = text.replace("\r\n", "\n")
        if new == span.text:
            continue
        before, after = to_lf(original_file[: span.start]), to_lf(original_file[span.end :])
        beside = [*(code for name, code in texts.items() if name != span.region), *far]
        seen = itertools.chain((Code(to_lf(data), language) for data in [original_file]), around)
        for was, now in [(span.text, new)] if beside else variants(span.text, new, language, seen):
            refusal = _judged(change(language, span.region, before, was, after, now, around, beside))
            if refusal is not None:
                return refusal
    return None


def _judged(subject: Change) -> Refusal | None:
    found = next(((rule, finding) for rule in _RULES for finding in rule(subject)), None)
    if found is None:
        return None
    rule, finding = found
    line = subject.new.line(finding.at)
    return Refusal(subject.region, line, finding.what, finding.advice, rule in _A_COMPILER_KNOWS)
