"""What a candidate's text can be behind its `#if`s: each choice of branches is screened as if it were the whole text.

A rule that reads all branches of a condition at once can be misled: a store in the branch that is not compiled seems to
stand before a read in the other one, a declaration there hides a use here. So no rule sees a condition. The original's
conditions are opened with the candidate's, branch by branch. What is no plain condition stays in the text, where the rules
about directives refuse it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kernelwright.screen.text import Code, odd_spellings

MAX_VARIANTS = 8
_OPENING = {"if", "ifdef", "ifndef"}
_CONDITIONS = {*_OPENING, "elif", "elifdef", "elifndef", "else", "endif"}
_PLAIN = re.compile(r"#(?:ifn?def [A-Za-z_]\w*|(?:el)?if\b[\w ()!<>=&|+*/%-]+|else|endif)")
_VERSION = re.compile(r"__CUDA_ARCH__ ?[<>=!]=? ?\d+")
_MACHINE = re.compile(
    r"__(?:S{0,2}SE\d?(?:_\d)?|AVX\w*?|FMA|F16C|BMI2?|POPCNT|LZCNT|ARM_NEON|ARM_FEATURE_\w+?|aarch64|x86_64|GNUC|clang)__"
    r"|__ARM_NEON|_OPENMP|_MSC_VER|__cplusplus|__CUDA_ARCH__"
)
"""What a compiler says of the machine and of itself; that it optimises, or checks, is not among it: a text that asks for that
is one text for the timed build and another one for a debugger."""


@dataclass
class _Group:
    """One `#if` to its `#endif`: the spans and the words of its directives."""

    marks: list[tuple[int, int]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def choices(self) -> int:
        """Its branches, and none of them where there is no `#else`."""
        return len(self.marks) - ("#else" in self.words)

    def erased(self, choice: int) -> Iterator[tuple[int, int]]:
        """The spans of all but one branch; of everything where `choice` is none of its branches."""
        for index, ((start, end), (after, _)) in enumerate(itertools.pairwise(self.marks)):
            yield start, end if index == choice else after
        yield self.marks[-1]


def variants(old: str, new: str, language: str, around: Iterable[Code]) -> list[tuple[str, str]]:
    """The original and the candidate for each choice of branches; both as they are where the candidate has no conditions, or
    too many, or some that are refused as they stand. Conditions of the files `around` may be used in the region too."""
    code, original = Code(new, language), Code(old, language)
    if not any(directive.name in _OPENING for directive in code.directives):
        return [(old, new)]
    known = {directive.text for one in (original, *around) for directive in one.directives}
    mine, theirs = _groups(code, known), _groups(original, known)
    sizes = {key: groups[0].choices() for key, groups in mine.items()}
    if not mine or math.prod(sizes.values()) > MAX_VARIANTS or next(odd_spellings(code), None):
        return [(old, new)]
    made = []
    for choices in itertools.product(*map(range, sizes.values())):
        chosen = dict(zip(sizes, choices, strict=True))
        made.append((_chosen(original.text, theirs, chosen), _chosen(code.text, mine, chosen)))
    return list(dict.fromkeys(made))


def _groups(code: Code, known: set[str]) -> dict[str, list[_Group]]:
    """The text's conditions by their directives' words: those that read alike choose alike, unless something in the text may
    define a macro between them. Empty where one of them is not whole, or not open to a candidate."""
    found, stack, ends = list[_Group](), list[_Group](), dict(code.gaps)
    for directive in code.directives:
        if directive.name in _OPENING:
            stack.append(_Group())
            found.append(stack[-1])
        if directive.name not in _CONDITIONS:
            continue
        if not stack or not _PLAIN.fullmatch(directive.text) or not _is_open(directive.text, known):
            return {}
        stack[-1].marks.append((directive.at, ends[directive.at]))
        stack[-1].words.append(directive.text)
        if directive.name == "endif":
            stack.pop()
    defines = any(directive.name in ("define", "undef", "include") for directive in code.directives)
    named: dict[str, list[_Group]] = {}
    for index, group in enumerate([] if stack else found):
        named.setdefault(" ".join(group.words) + (f" {index}" if defines else ""), []).append(group)
    return named


def _is_open(directive: str, known: set[str]) -> bool:
    """Whether a condition is one of the surroundings', or asks for the machine or for macros of the program."""
    names = set(re.findall(r"[A-Za-z_]\w*", directive.partition(" ")[2])) - {"defined"}
    if directive in known or directive in ("#else", "#endif"):
        return True
    if "__CUDA_ARCH__" in names and not _VERSION.search(directive):
        return False
    return bool(names) and all(_MACHINE.fullmatch(name) or not name.startswith("_") for name in names)


def _chosen(text: str, groups: Mapping[str, list[_Group]], chosen: Mapping[str, int]) -> str:
    kept = list(text)
    for key, choice in chosen.items():
        for start, end in (span for group in groups.get(key, ()) for span in group.erased(choice)):
            kept[start:end] = ["\n" if char == "\n" else " " for char in kept[start:end]]
    return "".join(kept)
