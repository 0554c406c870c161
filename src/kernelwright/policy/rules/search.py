"""The search over moves: what is tried next, on what, and what is kept.

First one candidate of all that rarely loses, then single ideas in the order of what they promise, each on top of the best so
far and kept only for a gain beyond noise and the task's least effect. What fails together is taken apart. The search is a
generator: it yields what it wants to know and is sent what came of it, so that replaying the results of a rollout's messages
brings it to where it was.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field

from kernelwright.policy.rules import flags
from kernelwright.policy.rules.draft import Brief, Draft, Move, possible, realise
from kernelwright.policy.rules.rule import FlagRule

CORRECT = "correct"


@dataclass(frozen=True)
class Try:
    """Ask for a candidate to be built, run and timed."""

    draft: Draft
    note: str


@dataclass(frozen=True)
class Analyse:
    """Ask what the compiler says of a candidate (of the original where it is None)."""

    candidate: str | None


@dataclass(frozen=True)
class Result:
    """What came of a request. `speedup` is t_base / t_candidate and `noise` the relative noise floor, where measured."""

    outcome: str
    speedup: float | None = None
    noise: float = 0.0
    reason: str = ""
    candidate: str | None = None
    registers: int | None = None
    spill_bytes: int | None = None
    missed: int | None = None
    """Loops that the compiler says it did not vectorise."""


@dataclass(frozen=True)
class Trial:
    """One candidate that was measured, and what it added to the best before it."""

    draft: Draft
    added: tuple[Move, ...]
    result: Result
    kept: bool


@dataclass
class Best:
    """The moves that further ideas stand on, and the best candidate measured."""

    moves: tuple[Move, ...] = ()
    draft: Draft | None = None
    speedup: float = 1.0
    result: Result | None = None
    trials: list[Trial] = field(default_factory=list)


Step = Generator[Try | Analyse, Result, None]


class Search:
    """One search over one task; `best` holds what it has come to, at every step."""

    def __init__(self, brief: Brief, can_analyse: bool) -> None:
        self.brief = brief
        self.best = Best()
        self._left = brief.max_calls
        self._can_analyse = can_analyse
        self._seen: dict[object, Result] = {realise(brief, ()).content: Result(CORRECT, 1.0)}
        self._done: set[Move] = set()
        """Moves that were measured, failed or were ruled out: not to be tried alone again."""
        self._idle: dict[str, int] = {}
        """Family → how many of its moves were measured without a gain."""

    def run(self) -> Step:
        yield from self._adopt(self._opening(), reserve=self.brief.max_calls // 2)
        yield from self._ask_compiler()
        while self._left > 0 and (idea := self._next_idea()) is not None:
            yield from self._adopt([idea], reserve=0)

    def _opening(self) -> list[Move]:
        """The first way of each rule that rarely loses, those included that fire only on what others have rewritten."""
        moves: list[Move] = []
        while True:
            known = {move.family for move in moves}
            found = _first_of_family(possible(self.brief, tuple(moves)))
            new = [move for move in found if move.rule.opening and move.family not in known]
            if not new:
                return moves
            moves += new

    def _adopt(self, moves: list[Move], reserve: int) -> Step:
        """Put moves on top of the best, taking them apart where they fail, down to `reserve` calls left."""
        groups = [moves]
        while groups and self._left > reserve:
            group = groups.pop(0)
            result = yield from self._measure(group)
            if result.outcome != CORRECT or (len(group) > 1 and self._loses(result)):
                groups[:0] = self._parts(group, result)
        self._done |= {move for group in groups for move in group} if len(moves) == 1 else set()

    def _parts(self, group: list[Move], result: Result) -> list[list[Move]]:
        """What to try of a group that failed: all but what the reason names; else the parts, the more promising first."""
        if len(group) == 1:
            self._done |= set(group)
            return []
        named = {move for move in group for flag in move.args if flag in result.reason.replace("'", " ").split()}
        if named and len(named) < len(group):
            self._done |= named
            return [[move for move in group if move not in named]]
        first = [move for move in group if isinstance(move.rule, FlagRule)]
        if not first or len(first) == len(group):
            ordered = sorted(group, key=lambda move: move.rule.risk)
            first = ordered[: len(group) // 2]
        second = [move for move in group if move not in first]
        return sorted((first, second), key=lambda part: -max(move.rule.gain for move in part))

    def _measure(self, added: Iterable[Move]) -> Generator[Try | Analyse, Result, Result]:
        """Measure the best with `added`, or recall what came of the same candidate before."""
        new = tuple(added)
        replaced = {move.family for move in new}
        draft = realise(self.brief, (*(move for move in self.best.moves if move.family not in replaced), *new))
        known = self._seen.get(draft.content)
        if known is not None:
            self._done |= set(new) if known.outcome == CORRECT else set()
            return known
        self._left -= 1
        result = self._seen[draft.content] = yield Try(draft, f"try {', '.join(map(str, new))}")
        self._judge(draft, new, result)
        return result

    def _judge(self, draft: Draft, new: tuple[Move, ...], result: Result) -> None:
        """Keep a candidate that gains beyond noise; let the opening stand, if it loses nothing, for others to build on."""
        speedup = result.speedup if result.outcome == CORRECT and result.speedup is not None else None
        margin = max(result.noise, self.brief.min_effect)
        kept = speedup is not None and speedup > self.best.speedup * (1 + margin)
        if kept and speedup is not None:
            self.best.draft, self.best.speedup, self.best.result = draft, speedup, result
        harmless = speedup is not None and self.best.draft is None and speedup >= 1 - margin
        if kept or (harmless and all(move.rule.opening for move in new)):
            self.best.moves = draft.moves
        if not kept:
            for move in new:
                self._idle[move.family] = self._idle.get(move.family, 0) + 1
        self.best.trials.append(Trial(draft, new, result, kept))
        if result.outcome == CORRECT:
            self._done |= set(new)

    def _loses(self, result: Result) -> bool:
        """Whether a candidate is slower than the best by more than noise: something in it costs what the rest may gain."""
        margin = max(result.noise, self.brief.min_effect)
        return result.speedup is not None and result.speedup < self.best.speedup * (1 - margin)

    def _next_idea(self) -> Move | None:
        ideas = [move for move in possible(self.brief, self.best.moves) if self._worth(move)]
        return max(ideas, key=self._promise, default=None)

    def _worth(self, move: Move) -> bool:
        if move in self._done:
            return False
        fallback = isinstance(move.rule, FlagRule) and move.rule.fallback
        earlier = any(other.rule is move.rule for other in self.best.moves)
        first = next(other for other in possible(self.brief) if other.family == move.family) if fallback else move
        return not fallback or first == move or (first in self._done and not earlier and not self._was_correct(first))

    def _was_correct(self, move: Move) -> bool:
        return any(move in trial.added and trial.result.outcome == CORRECT for trial in self.best.trials)

    def _promise(self, move: Move) -> float:
        """The expected gain, less for each way of the same family that brought none, and for risk."""
        return (move.rule.gain - 1) * 0.5 ** self._idle.get(move.family, 0) * (1 - 0.02 * move.rule.risk)

    def _ask_compiler(self) -> Step:
        """One look at the compiler's report, where its answer can rule ideas out."""
        asked = {"register-cap", "omp-simd"} & {move.family for move in possible(self.brief)}
        if not self._can_analyse or not asked or self._left == 0:
            return
        best = self.best.result
        report = yield Analyse(best.candidate if best is not None else None)
        for move in possible(self.brief, self.best.moves):
            if _ruled_out(move, report):
                self._done.add(move)


def _ruled_out(move: Move, report: Result) -> bool:
    if move.rule is flags.REGISTERS and report.registers is not None:
        cap = int(move.label.rsplit("=", 1)[1])
        return cap >= report.registers or report.registers <= 32 or bool(report.spill_bytes)
    return move.family == "omp-simd" and report.missed == 0


def _first_of_family(moves: Iterable[Move]) -> list[Move]:
    first: dict[str, Move] = {}
    for move in moves:
        first.setdefault(move.family, move)
    return list(first.values())
