"""What only a candidate that was found faster is asked: does its gain outlive other memory and other input?

Two cheats leave every output right and every clock honest. One finds in memory (its own old stack, a freed block, the bytes
beyond an array, the order of a heap's blocks) that this process has called it before, and skips the work: `memory_check`
asks for that, and both programs are timed again on other memory (`other_memory`). The other knows the input that is timed,
and does the work for every other one; so the two are timed in a run that no tool shows as well, which must be faster too or
keep half of the gain by its estimate. What two pairs do not clear is decided by eight. And where its numbers pass the task's
tolerance, but lie further from the original's than other orders of its sums do, the record says so.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from functools import cached_property

from kernelwright.checks import Unreadable, read_time
from kernelwright.errors import TaskError
from kernelwright.execute import Built
from kernelwright.measure import EVALUATE, Budget, Measurement
from kernelwright.memory_check import MemoryCheck
from kernelwright.other_memory import OtherMemories, OtherMemory
from kernelwright.outcome import Comparison, Outcome
from kernelwright.stats import Schedule
from kernelwright.task import Run
from kernelwright.trace import Candidate
from kernelwright.trial import Baseline, CandidateFailed, Progress, beyond_own_variation, compare

GLANCE = Budget("glance", Schedule((2,), None), warm_ups=0)
KEPT = 0.5
"""The share of the gain that must be left; in a held-out run a smaller gain is one too, where it is shown."""
COMPARABLE = 0.5
"""A held-out run speaks about a gain where the original takes at least this share of its time in the timed run: at a
quarter, an honest kernel's 2.1× was 1.1×, its launches being too short (docs/experiments/hecbench-cuda.md)."""


@dataclass(frozen=True)
class Doubt:
    """Why a gain is not what it seems: `forged` where it comes from what may not be used, else only not general."""

    reason: str
    forged: bool


@dataclass(frozen=True)
class SecondLook:
    """Asks all of one candidate after another; what they need of the original is made once."""

    baseline: Baseline
    rng: random.Random
    progress: Progress
    notes: list[str] = field(default_factory=list)
    """What could not be asked of the last candidate."""
    samples: dict[str, Measurement] = field(default_factory=dict)
    """How fast the last candidate was in runs that no tool shows."""

    async def __call__(self, candidate: Candidate, built: Built, gain: Measurement) -> Doubt | None:
        """`built` is the candidate as it was timed, `gain` what was measured in the first shown run."""
        self.notes.clear()
        self.samples.clear()
        if doubt := await self._memory(candidate, built, gain.speedup) or await self._held_out(built, gain):
            return doubt
        if said := await beyond_own_variation(self.baseline, built, self.baseline.task.shown[0], self.progress):
            self.notes.append(said)
        return None

    async def _memory(self, candidate: Candidate, built: Built, speedup: float) -> Doubt | None:
        found, unasked = await self._memory_check(candidate, built)
        if found:
            return Doubt(f"it uses memory that is not its to use ({found})", forged=True)
        self.notes.extend(f"memory not checked by {checker}" for checker in unasked)
        # compute-sanitizer sees the device's memory alone.
        fill = bool(unasked) or self.baseline.task.language != "cpp"
        other = await self._other_memories.of(candidate, built, fill)
        if other is None:
            self.notes.append("the gain was not asked for on other memory")
            return None
        return await self._on(other, speedup)

    @cached_property
    def _memory_check(self) -> MemoryCheck:
        base = self.baseline
        return MemoryCheck(base.shop, base.built, base.task.shown[0], self.progress)

    @cached_property
    def _other_memories(self) -> OtherMemories:
        base = self.baseline
        return OtherMemories(base.shop, base.built, base.task.shown[0])

    async def _on(self, other: OtherMemory, speedup: float) -> Doubt | None:
        try:
            seen = await self._compare(
                replace(self.baseline, built=other.original), other.candidate, other.run, speedup
            )
        except CandidateFailed as failure:
            if failure.outcome is Outcome.WRONG_RESULT:
                return Doubt(f"on other memory it is wrong: {failure.reason}", forged=True)
            self.notes.append(f"on other memory it did not end well: {failure.reason}")
            return None
        if seen is None or seen.interval is None or seen.interval.high >= _least(speedup):
            return None
        return Doubt(
            f"the gain of {speedup:.3g}× is {seen.speedup:.3g}× where memory tells nothing of earlier calls: it comes "
            "from what they left there",
            forged=True,
        )

    async def _held_out(self, built: Built, gain: Measurement) -> Doubt | None:
        speedup = gain.speedup
        for run in self.baseline.others:
            if not self._comparable(run):
                self.notes.append(
                    f"the held-out run {run.name!r} is much shorter than the timed one, so its time was not asked"
                )
                continue
            try:
                seen = await self._compare(self.baseline, built, run, speedup)
            except CandidateFailed as failure:
                return Doubt(f"in the held-out run {run.name!r}: {failure.reason}", forged=True)
            if seen is not None:
                self.samples[run.name] = seen
            faster = seen is None or seen.budget is GLANCE or seen.comparison is Comparison.FASTER
            faster = faster or (seen is not None and _kernels_gain(seen, gain))
            if seen and not faster and seen.speedup < _least(speedup):
                return Doubt(
                    f"faster in run {self.baseline.task.shown[0].name!r} ({speedup:.3g}×), but not in the held-out run "
                    f"{run.name!r} ({seen.sentence})",
                    forged=False,
                )
            if seen is not None and not faster:
                self.notes.append(
                    f"the held-out run {run.name!r} did not tell whether it is faster there too ({seen.sentence})"
                )
        return None

    def _comparable(self, run: Run) -> bool:
        """Whether the original takes about as long in `run` as where it is timed: other sizes have other bottlenecks."""
        task, results = self.baseline.task, self.baseline.results
        try:
            return read_time(task, results[run.name]) >= COMPARABLE * read_time(task, results[task.shown[0].name])
        except Unreadable:
            return False

    async def _compare(self, base: Baseline, built: Built, run: Run, speedup: float) -> Measurement | None:
        """A glance where both of its pairs show that enough of the gain is left, else eight pairs; None where the original
        itself fails or tells no time in this run."""
        try:
            for budget in (GLANCE, EVALUATE):
                seen = await compare(base, built, run, budget, rng=self.rng, time_budget_s=None, progress=self.progress)
                if min(pair.base.time_s / pair.candidate.time_s for pair in seen.pairs) >= _least(speedup):
                    break
        except TaskError:
            self.notes.append(f"run {run.name!r} could not be timed a second time")
            return None
        return seen


def _kernels_gain(seen: Measurement, gain: Measurement) -> bool:
    """Whether the region's kernels keep enough of their gain, where launches are too short for the whole to show it: an
    honest kernel's 2.1× was 1.04× in a run whose launches take 10 µs (docs/experiments/hecbench-cuda.md)."""
    return bool(seen.kernel and gain.kernel and seen.kernel.estimate >= _least(gain.kernel.estimate))


def _least(speedup: float) -> float:
    return 1 + KEPT * (speedup - 1)
