"""From a choice of moves to a candidate: the rules applied in their fixed order to the regions of a task.

A move is one way of one rule. The same moves give the same draft whatever the order in which a search found them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kernelwright.policy.rules import arithmetic, flags, launch, loops, nests, parallel, pointers
from kernelwright.policy.rules.rule import FlagRule, Rule, rewrites
from kernelwright.policy.rules.syntax import Site

CODE_RULES: tuple[Rule, ...] = (
    *arithmetic.RULES,
    *nests.RULES,
    *parallel.RULES,
    *loops.RULES,
    *pointers.RULES,
    *launch.RULES,
)
"""In the order in which they are applied: expressions, then loops, then declarations."""
FLAG_RULES: tuple[FlagRule, ...] = (*flags.RULES, flags.TUNABLE)


@dataclass(frozen=True)
class Region:
    """A region of the task as the rollout's first message states it."""

    name: str
    file: str
    first_line: int
    text: str


@dataclass(frozen=True)
class Brief:
    """What the rules know of a task: the `data` of the rollout's first user message."""

    task: str
    language: str
    regions: tuple[Region, ...]
    files: tuple[tuple[str, str], ...]
    flags: tuple[str, ...]
    tunables: tuple[tuple[str, tuple[int, ...]], ...]
    forbidden: tuple[str, ...]
    min_effect: float
    max_calls: int

    @staticmethod
    def of(data: Mapping[str, Any]) -> Brief:
        regions = tuple(Region(name, region["file"], region["first_line"], region["text"])
                        for name, region in data["regions"].items())  # fmt: skip
        return Brief(
            data["task"], data["language"], regions,
            tuple((path, text.replace("\r\n", "\n")) for path, text in data["files"].items()),
            tuple(data.get("flags", ())),
            tuple((name, tuple(values)) for name, values in data.get("tunables", {}).items()),
            tuple(data.get("forbid_flags", ())), float(data["min_effect"]), int(data["max_calls"]),
        )  # fmt: skip


@dataclass(frozen=True)
class Move:
    """One way of one rule: a variant of a source rewrite, or one set of compile arguments."""

    rule: Rule | FlagRule
    label: str
    args: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """Moves of one family exclude each other: a rule's ways, a tunable's values."""
        return f"tunable {self.label.split('=')[0]}" if self.rule is flags.TUNABLE else self.rule.name

    def __str__(self) -> str:
        return f"{self.rule.name} ({self.label})" if self.label else self.rule.name


@dataclass(frozen=True)
class Draft:
    """A candidate that a set of moves makes: changed regions, compile arguments, and the moves that changed something."""

    code: tuple[tuple[str, str], ...]
    args: tuple[str, ...]
    moves: tuple[Move, ...]

    @property
    def content(self) -> tuple[object, object]:
        return self.code, self.args


class _Sources:
    """The task's files with the regions' current texts in them."""

    def __init__(self, brief: Brief) -> None:
        self.brief = brief
        self.files = {path: text.encode("utf-8", errors="surrogateescape") for path, text in brief.files}
        self.spans = {region.name: self._find(region) for region in brief.regions if region.file in self.files}

    def _find(self, region: Region) -> tuple[int, int]:
        data, text = self.files[region.file], region.text.encode("utf-8", errors="surrogateescape")
        start = data.find(text, sum(len(line) for line in data.splitlines(keepends=True)[: region.first_line - 1]))
        if start < 0:
            raise ValueError(
                f"the text of region {region.name!r} does not stand at line {region.first_line} of its file"
            )
        return start, start + len(text)

    def site(self, region: Region) -> Site:
        return Site(self.files[region.file], *self.spans[region.name], self.brief.language, self.brief.flags)

    def take(self, region: Region, site: Site) -> None:
        """Put a rewritten region in; regions after it in the same file move."""
        grown = len(site.data) - len(self.files[region.file])
        self.files[region.file] = site.data
        for other in self.brief.regions:
            if other.file == region.file and self.spans[other.name][0] > site.start:
                start, end = self.spans[other.name]
                self.spans[other.name] = (start + grown, end + grown)
        self.spans[region.name] = (site.start, site.end)

    @property
    def changed(self) -> tuple[tuple[str, str], ...]:
        texts = [(region.name, self.site(region).text, region.text) for region in self._regions]
        return tuple((name, text) for name, text, before in texts if text != before)

    @property
    def _regions(self) -> list[Region]:
        return [region for region in self.brief.regions if region.name in self.spans]

    def apply(self, move: Move) -> tuple[str, ...] | None:
        """Apply a source rewrite to every region; the compile arguments it needs, or None where it fires nowhere."""
        assert isinstance(move.rule, Rule)
        needed: tuple[str, ...] | None = None
        for region in self._regions:
            for rewrite in rewrites(move.rule, self.site(region)):
                if rewrite.label == move.label:
                    self.take(region, rewrite.site)
                    needed = rewrite.args
                    break
        return needed

    def moves(self) -> list[Move]:
        """Every source rewrite that fires now."""
        found = {Move(rule, rewrite.label): None for rule in CODE_RULES if self.brief.language in rule.languages
                 for region in self._regions for rewrite in rewrites(rule, self.site(region))}  # fmt: skip
        return list(found)


def _ordered(moves: Sequence[Move]) -> list[Move]:
    order = {rule.name: at for at, rule in enumerate(CODE_RULES)}
    return sorted(moves, key=lambda move: order.get(move.rule.name, -1) if isinstance(move.rule, Rule) else -1)


@lru_cache(maxsize=256)
def realise(brief: Brief, moves: tuple[Move, ...]) -> Draft:
    """The candidate that `moves` make; moves that change nothing are left out of it."""
    sources, args, fired = _Sources(brief), list[str](), list[Move]()
    for move in _ordered(moves):
        needed = move.args if isinstance(move.rule, FlagRule) else sources.apply(move)
        if needed is not None:
            fired.append(move)
            args += [flag for flag in needed if flag not in args and flag not in brief.flags]
    return Draft(sources.changed, tuple(args), tuple(fired))


@lru_cache(maxsize=64)
def possible(brief: Brief, applied: tuple[Move, ...] = ()) -> tuple[Move, ...]:
    """Every move that could be made on top of those applied: source rewrites that fire there, and compile arguments."""
    sources = _Sources(brief)
    for move in _ordered(applied):
        if isinstance(move.rule, Rule):
            sources.apply(move)
    pristine = _Sources(brief).moves() if applied else []
    offered = flags.options(brief.language, brief.flags, brief.forbidden, dict(brief.tunables))
    listed = [*sources.moves(), *pristine, *(Move(*option) for option in offered)]
    return tuple(dict.fromkeys(move for move in listed if move not in applied))
