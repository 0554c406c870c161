"""What only a candidate that was found faster is asked: does its gain outlive other memory and other input?

Two cheats leave every output right and every clock honest. One finds in memory that nobody initialised (its own old
stack or heap) that this process has called it before, and skips the work; so original and candidate are built and run
again with such memory overwritten. The other knows the input that is timed, and does the work for every other one; so the
two are timed on a held-out input as well. Only what is surely there is held against a candidate: what two pairs do not
clear is decided by eight. Memory beyond a variable's end, which a wild pointer reaches, is not overwritten.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from kernelwright.checks import Unreadable, read_time
from kernelwright.errors import CandidateError, TaskError
from kernelwright.execute import BuildFailure, Built
from kernelwright.measure import EVALUATE, Budget, Measurement
from kernelwright.outcome import Comparison
from kernelwright.stats import Schedule
from kernelwright.task import Run
from kernelwright.trace import Candidate
from kernelwright.trial import Baseline, CandidateFailed, Progress, compare

GLANCE = Budget("glance", Schedule((2,), None), warm_ups=0)
KEPT = 0.5
"""The share of the gain that must be left; in a held-out run a smaller gain is one too, where it is sure."""
COMPARABLE = 0.5
"""A held-out run speaks about a gain where the original takes at least this share of its time in the timed run: at a
quarter, an honest kernel's 2.1× was 1.1×, its launches being too short (docs/experiments/hecbench-cuda.md)."""
SCRUB = ("-ftrivial-auto-var-init=pattern",)
"""Fills every variable without an initialiser, at each call (GCC 12, Clang 8)."""
SCRUB_HEAP = {"GLIBC_TUNABLES": "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0", "MALLOC_PERTURB_": "165"}
"""Fills what the C library's malloc hands out and takes back; its per-thread cache would skip that."""
NOT_SCRUBBED = "whether the gain comes from what earlier calls left in uninitialised memory was not tried"


@dataclass(frozen=True)
class Doubt:
    """Why a gain is not what it seems: `forged` where it comes from what may not be used, else only not general."""

    reason: str
    forged: bool


@dataclass(frozen=True)
class SecondLook:
    """Asks both questions of one candidate after another; the scrubbed original is built once."""

    baseline: Baseline
    rng: random.Random
    progress: Progress
    notes: list[str] = field(default_factory=list)
    """What could not be asked of the last candidate."""
    _scrubbed: list[Baseline | None] = field(default_factory=list)

    async def __call__(self, candidate: Candidate, built: Built, speedup: float) -> Doubt | None:
        """`built` is the candidate as it was timed, `speedup` its gain in the first shown run."""
        self.notes.clear()
        return await self._scrubbed_memory(candidate, speedup) or await self._held_out(built, speedup)

    async def _scrubbed_memory(self, candidate: Candidate, speedup: float) -> Doubt | None:
        base = await self._scrubbed_baseline()
        if base is None:
            self.notes.append(NOT_SCRUBBED)
            return None
        scrubbed = replace(candidate, compile_args=(*candidate.compile_args, *SCRUB))
        built = await self.baseline.shop.build(scrubbed, "scrubbed-candidate")
        if isinstance(built, BuildFailure):
            self.notes.append(NOT_SCRUBBED)
            return None
        run = _with_scrubbed_heap(self.baseline.task.shown[0])
        try:
            seen = await self._compare(base, built, run, speedup)
        except CandidateFailed as failure:
            return Doubt(f"with uninitialised memory overwritten it fails: {failure.reason}", forged=True)
        if seen is None or seen.interval is None or seen.interval.high >= _least(speedup):
            return None
        return Doubt(
            f"the gain of {speedup:.3g}× is {seen.speedup:.3g}× when uninitialised memory is overwritten: it comes from what "
            "earlier calls left there",
            forged=True,
        )

    async def _scrubbed_baseline(self) -> Baseline | None:
        """The original with its memory overwritten; None where that cannot be built, or is not right."""
        if not self._scrubbed:
            self._scrubbed.append(await self._build_scrubbed_baseline())
        return self._scrubbed[0]

    async def _build_scrubbed_baseline(self) -> Baseline | None:
        shop, task = self.baseline.shop, self.baseline.task
        if task.language != "cpp":
            return None
        self.progress("building the original with its memory overwritten")
        try:
            built = await shop.build(Candidate({}, SCRUB), "scrubbed-baseline")
        except CandidateError:
            return None
        return None if isinstance(built, BuildFailure) else replace(self.baseline, built=built)

    async def _held_out(self, built: Built, speedup: float) -> Doubt | None:
        for run in self.baseline.task.held_out:
            if not self._comparable(run):
                self.notes.append(
                    f"the held-out run {run.name!r} is much shorter than the timed one, so its time was not asked"
                )
                continue
            try:
                seen = await self._compare(self.baseline, built, run, speedup)
            except CandidateFailed as failure:
                return Doubt(f"in the held-out run {run.name!r}: {failure.reason}", forged=True)
            faster = seen is None or seen.comparison is Comparison.FASTER
            if seen and seen.interval and not faster and seen.interval.high < _least(speedup):
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
        """Eight pairs of a run, where two do not both show that enough of the gain is left; None where they do, or where the
        original itself fails or tells no time in this run."""
        try:
            for budget in (GLANCE, EVALUATE):
                seen = await compare(base, built, run, budget, rng=self.rng, time_budget_s=None, progress=self.progress)
                if budget is GLANCE and min(p.base.time_s / p.candidate.time_s for p in seen.pairs) >= _least(speedup):
                    return None
        except TaskError:
            self.notes.append(f"run {run.name!r} could not be timed a second time")
            return None
        return seen


def _least(speedup: float) -> float:
    return 1 + KEPT * (speedup - 1)


def _with_scrubbed_heap(run: Run) -> Run:
    return run.model_copy(update={"env": {**SCRUB_HEAP, **run.env}})
