"""What a rule is: a rewrite of a region or a set of compile arguments, with the reason for it and what it stands on.

A code rule says for one region which edits it would make, as one or more variants; `rewrites` makes them, checks that
each parses, and repeats a rule whose result it can rewrite again. A rule is exact by its precondition unless `assumes`
names what the precondition cannot show; that is then for the task's checks to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kernelwright.policy.rules.syntax import Edit, Site

CUDA, HIP, CPP = "cuda", "hip", "cpp"
GPU = (CUDA, HIP)
EVERY = (CUDA, HIP, CPP)


@dataclass(frozen=True)
class Variant:
    """One way to apply a rule: `label` tells it from the rule's others."""

    label: str
    edits: tuple[Edit, ...] = ()
    args: tuple[str, ...] = ()
    """Compile arguments without which the edits do nothing."""


@dataclass(frozen=True)
class Rule:
    """A source rewrite."""

    name: str
    languages: tuple[str, ...]
    precondition: str
    reason: str
    variants: Callable[[Site], Iterable[Variant]]
    gain: float = 1.02
    """The speedup expected where it fires: only the order of trying comes from it."""
    risk: int = 0
    """How likely it is to fail, 0 to 9: what is dropped first when several rules fail together."""
    assumes: str = ""
    opening: bool = False
    """Whether it goes into the first candidate, with the others that rarely lose."""
    repeats: bool = False
    """Whether its result may hold further places for it, as with nested calls."""


@dataclass(frozen=True)
class FlagRule:
    """Compile arguments; each of `options` is one way."""

    name: str
    languages: tuple[str, ...]
    precondition: str
    reason: str
    options: tuple[tuple[str, ...], ...] = field(default=())
    gain: float = 1.02
    risk: int = 0
    assumes: str = ""
    opening: bool = False
    fallback: bool = False
    """Whether a later option is only worth a try where an earlier one failed."""


@dataclass(frozen=True)
class Rewrite:
    """A region after one variant of a rule."""

    label: str
    site: Site
    args: tuple[str, ...] = ()


_PASSES = 4


def rewrites(rule: Rule, site: Site) -> list[Rewrite]:
    """All variants of `rule` for the region; an empty list where it does not fire."""
    if site.language not in rule.languages:
        return []
    made: list[Rewrite] = []
    for variant in rule.variants(site):
        result = site.edited(variant.edits)
        if result is not None and not any(result.data == other.site.data for other in made):
            made.append(Rewrite(variant.label, _repeated(rule, variant.label, result), variant.args))
    return made


def _repeated(rule: Rule, label: str, site: Site) -> Site:
    for _ in range(_PASSES if rule.repeats else 0):
        again = next((variant for variant in rule.variants(site) if variant.label == label), None)
        result = site.edited(again.edits) if again is not None else None
        if result is None:
            break
        site = result
    return site


def only(edits: Iterable[Edit]) -> list[Variant]:
    """The variants of a rule that has one way to apply it: none without an edit."""
    listed = tuple(edits)
    return [Variant("", listed)] if listed else []
