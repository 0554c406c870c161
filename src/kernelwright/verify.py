"""The verifier: the only place that decides what a candidate is worth.

It starts from its own pristine baseline and shares no state with the tools. Region text only is spliced; structure and
compile arguments are screened; original and candidate run interleaved in fresh processes; the outputs of the timed runs
themselves and of held-out runs are checked outside the process. Every verdict says what it rests on.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from kernelwright import __version__, stats
from kernelwright.acceptance import is_accepted
from kernelwright.by_hand import reproduce
from kernelwright.doubts import SecondLook
from kernelwright.execute import Built, Workshop
from kernelwright.limits import fastest_possible, kernels_below
from kernelwright.measure import EVALUATE, PROVE, Budget, Measurement, Pair
from kernelwright.other_inputs import open_judged
from kernelwright.outcome import CheckResult, Comparison, Evidence, Outcome, Verdict
from kernelwright.sandbox import Sandbox
from kernelwright.task import FileCheck, NumberCheck, PatternCheck, RowCheck, Task
from kernelwright.trace import Candidate
from kernelwright.trial import (
    Baseline,
    CandidateFailed,
    Progress,
    build,
    compare,
    learn_limits,
    require_screened,
    try_runs,
)

WALL_SHARE, WALL_SAVED = 0.3, 0.1
"""Where the timed part is this share of the process and the program says that it saved this share, medians tell enough;
below, the interval of the pairs must."""
WALL_AGREEMENT = 0.3
"""At least this share of the time that the program says it saved must be missing from the process's wall time."""
KERNEL_SHARE = 0.3
"""Where the device shows less than this share of the gain in the region's kernels, the verdict says so: it was made between
launches, or a clock was stopped before they ended."""


@dataclass(frozen=True)
class Verifier:
    """A baseline that candidates of one task are judged against, one after another."""

    baseline: Baseline
    rng: random.Random
    progress: Progress
    on_pair: Callable[[Pair, int], None] | None = None

    async def __call__(
        self, candidate: Candidate, budget: Budget = PROVE, time_budget_s: float | None = None
    ) -> Verdict:
        """The verdict on one candidate. Infrastructure faults and the user's mistakes are raised, never scored."""
        task = self.baseline.task
        by_hand = reproduce(self.baseline.shop, task.shown[0], candidate.compile_args)
        told = provenance(self.baseline, candidate)
        verdict = Verdict(task.name, Outcome.CORRECT, "", reproduce=by_hand, provenance=told)
        try:
            await require_screened(self.baseline, candidate, "the proof")
            self.progress("building the candidate")
            built = await build(self.baseline, candidate)
            checks = await try_runs(self.baseline, built, (*task.shown, *self.baseline.others), self.progress)
            if not task.check:
                return replace(verdict, outcome=Outcome.UNVERIFIED, reason="the task has no check")
            measured = await self._measure(built, budget, time_budget_s)
            await learn_limits(self.baseline, measured[0].candidate_s, self.progress)
        except CandidateFailed as failure:
            kept = None if failure.outcome is Outcome.REFUSED else by_hand
            return replace(
                verdict, outcome=failure.outcome, reason=failure.reason, checks=failure.checks, reproduce=kept
            )
        verdict = decide(self.baseline, verdict, checks, measured)
        if verdict.comparison is not Comparison.FASTER:
            return verdict
        doubt = await self.second_look(candidate, built, measured[0])
        if verdict.evidence is not None:
            notes = (*verdict.evidence.notes, *self.second_look.notes)
            seen = {run: measured.to_json() for run, measured in self.second_look.samples.items()}
            evidence = replace(verdict.evidence, notes=notes)
            verdict = replace(verdict, evidence=evidence, samples={**verdict.samples, **seen})
        if doubt is not None and doubt.forged:
            return suspected(verdict, doubt.reason)
        return replace(verdict, comparison=Comparison.UNRESOLVED, reason=doubt.reason) if doubt else verdict

    @cached_property
    def second_look(self) -> SecondLook:
        return SecondLook(self.baseline, self.rng, self.progress)

    async def _measure(self, built: Built, budget: Budget, time_budget_s: float | None) -> list[Measurement]:
        """The first shown run by the budget asked for; the others, which may only not be slower, by `evaluate`."""
        measured = []
        for number, run in enumerate(self.baseline.task.shown):
            measured.append(
                await compare(
                    self.baseline,
                    built,
                    run,
                    budget if number == 0 else EVALUATE,
                    rng=self.rng,
                    time_budget_s=time_budget_s,
                    progress=self.progress,
                    on_pair=self.on_pair,
                )
            )
        return measured


def decide(
    baseline: Baseline, verdict: Verdict, checks: Sequence[CheckResult], measured: Sequence[Measurement]
) -> Verdict:
    """The verdict from what was checked and measured; nothing is run here."""
    task, headline = baseline.task, measured[0]
    verdict = replace(
        verdict,
        comparison=headline.comparison,
        speedup=headline.speedup,
        interval=headline.interval,
        level=headline.level,
        kernel_speedup=headline.kernel.estimate if headline.kernel else None,
        checks=tuple(checks),
        samples={run.name: result.to_json() for run, result in zip(task.shown, measured, strict=True)},
        evidence=evidence(baseline, headline),
        reason=headline.sentence,
    )
    if doubt := suspicion(baseline, measured):
        return suspected(verdict, doubt)
    slower = [
        run.name
        for run, result in zip(task.shown[1:], measured[1:], strict=True)
        if result.comparison is Comparison.SLOWER
    ]
    if slower and headline.comparison is Comparison.FASTER:
        return replace(
            verdict,
            comparison=Comparison.UNRESOLVED,
            reason=f"faster in run {task.shown[0].name!r}, but slower in {', '.join(slower)}",
        )
    return verdict


def suspected(verdict: Verdict, reason: str) -> Verdict:
    """The verdict without its comparison, which evidence speaks against."""
    return replace(
        verdict,
        outcome=Outcome.SUSPECT,
        reason=reason,
        comparison=None,
        speedup=None,
        interval=None,
        level=None,
        kernel_speedup=None,
    )


def suspicion(baseline: Baseline, measured: Sequence[Measurement]) -> str | None:
    """Why a time cannot be believed: below what physics allows, or the process's wall time tells another story."""
    task = baseline.task
    limit = fastest_possible(task, baseline.shop.arch)
    if limit is not None and task.time.better == "lower" and measured[0].candidate_s < limit.least_s:
        return (
            f"run {task.shown[0].name!r}: {measured[0].candidate_s:.3g} s is below {limit.least_s:.3g} s, the least that the "
            f"task's floor allows on this device ({limit.basis})"
        )
    for run, result in zip(task.shown, measured, strict=True):
        if task.time.source == "wall" or task.time.better == "higher" or result.speedup <= 1:
            continue
        base_wall = statistics.median(pair.base.wall_s for pair in result.pairs)
        wall = statistics.median(pair.candidate.wall_s for pair in result.pairs)
        saved, missing = result.base_s - result.candidate_s, base_wall - wall
        plain = result.base_s >= WALL_SHARE * base_wall and saved > WALL_SAVED * base_wall
        bounds = missing_time(result, WALL_AGREEMENT)
        sure = saved > task.min_effect * base_wall and bounds is not None and bounds[1] < 0
        if sure or (plain and missing < WALL_AGREEMENT * saved):
            return (
                f"run {run.name!r}: the program says that it saved {saved * 1e3:.3g} ms, but the process took only "
                f"{missing * 1e3:.3g} ms less ({base_wall * 1e3:.4g} → {wall * 1e3:.4g} ms)"
            )
        if result.candidate_s > 1.02 * wall and not result.base_s > 1.02 * base_wall:
            return f"run {run.name!r}: the program says {result.candidate_s:.3g} s, the whole process took {wall:.3g} s"
    return None


def missing_time(result: Measurement, agreement: float) -> tuple[float, float] | None:
    """Seconds by which the process took less with the candidate than with the original, `agreement` × what the program
    says it saved taken off: an interval at the budget's level, from the same pairs. None where it has none."""
    alpha = result.budget.schedule.alpha
    return stats.signed_rank_interval(_missing(result, agreement), alpha) if alpha is not None else None


def _missing(result: Measurement, agreement: float) -> list[float]:
    return [
        pair.base.wall_s - pair.candidate.wall_s - agreement * (pair.base.time_s - pair.candidate.time_s)
        for pair in result.pairs
    ]


def evidence(baseline: Baseline, headline: Measurement) -> Evidence:
    """Which kinds of evidence (docs/task-file.md) the task's checks give, and what the time rests on."""
    task = baseline.task
    kinds = {
        "outside": any(isinstance(check, FileCheck) for check in task.check),
        "numbers": any(isinstance(check, NumberCheck | RowCheck) for check in task.check),
        "program": any(isinstance(check, PatternCheck) for check in task.check),
    }
    notes = list(baseline.shop.notes)
    if not any(kinds.values()):
        notes.append("only the exit code was checked")
    seen = missing_time(headline, 0.0)
    if headline.comparison is Comparison.FASTER and task.time.source != "wall" and not (seen and seen[0] > 0):
        notes.append(
            "the gain is in the time that the program reports; the process as a whole was not seen to be faster"
        )
    kernel = headline.kernel
    if (
        headline.comparison is Comparison.FASTER
        and kernel
        and kernel.estimate < 1 + KERNEL_SHARE * (headline.speedup - 1)
    ):
        notes.append(f"the region's kernels themselves took about as long as before ({kernel.estimate:.3g}×)")
    if below := kernels_below(task, baseline.shop.arch, headline):
        notes.append(below)
    if not is_accepted(task, baseline.shop.arch):
        notes.append("the task itself was not tested: kernelwright check")
    if baseline.shop.sandbox.name == "none":
        notes.append("run without a sandbox")
    return Evidence(
        tuple(kind for kind, given in kinds.items() if given),
        "held-out" if task.held_out else "derived" if baseline.others else "single-input",
        tuple(notes),
    )


def provenance(baseline: Baseline, candidate: Candidate) -> dict[str, Any]:
    """What is needed to know later what was judged, by what, under which conditions."""
    shop = baseline.shop
    return {
        "kernelwright": __version__,
        "task_fingerprint": shop.task.fingerprint,
        "candidate": candidate.to_json(),
        "arch": shop.arch,
        "sandbox": shop.sandbox.name,
        "approval": shop.approval is not None,
        "interposed": shop.plan.sees_regions,
        "units": sorted({source for command in shop.plan.append for source in command.sources}),
        "baseline_artifact": baseline.built.artifact,
    }


async def verify(
    task: Task,
    candidate: Candidate,
    sandbox: Sandbox,
    *,
    budget: Budget = PROVE,
    time_budget_s: float | None = None,
    seed: int | None = None,
    keep: bool = False,
    progress: Progress = lambda _: None,
) -> Verdict:
    """Judge one candidate from a pristine copy; see `Verifier`. `time_budget_s` defaults to the task's `verify.budget_s`.

    `seed` settles the order in which original and candidate run; without it nobody knows the coins beforehand.
    """
    async with Workshop(task, sandbox, keep) as shop:
        baseline = await open_judged(shop, progress)
        verifier = Verifier(baseline, random.Random(seed), progress)
        return await verifier(candidate, budget, time_budget_s or task.verify.budget_s)
