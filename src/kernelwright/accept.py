"""The acceptance test: a task is tested before any policy is.

A task that calls an empty kernel correct would train a model to write empty kernels. So texts that must be rejected are
tried on the task first, and the unmodified code must not be called faster or slower than itself. Each probe passed,
failed, or was not applicable for a stated reason; none is silently skipped. Where the device is elsewhere, `accept_builds`
says beforehand what compilers alone can: which tasks are worth the device's time.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kernelwright.acceptance import remember
from kernelwright.errors import CandidateError, TaskError
from kernelwright.execute import Workshop
from kernelwright.measure import EVALUATE, Measurement
from kernelwright.other_inputs import open_judged
from kernelwright.outcome import SCHEMA, Comparison, Outcome
from kernelwright.probes import KINDS, Probe, derive
from kernelwright.sandbox import Sandbox
from kernelwright.source import unparsed_kernels
from kernelwright.task import Region, Task
from kernelwright.trace import Candidate
from kernelwright.trial import Baseline, CandidateFailed, Progress, build, build_original, compare, try_runs

Status = Literal["passed", "failed", "not_applicable", "built"]


@dataclass(frozen=True)
class ProbeResult:
    """What one probe of one region showed; `built` is that of a text that compiles and was not run."""

    probe: str
    region: str
    target: str
    status: Status
    outcome: str | None
    """The outcome that the probe's text got; None where nothing was tried."""
    reason: str


@dataclass(frozen=True)
class Acceptance:
    """Whether a task is fit for use, and why."""

    task: str
    reasons: tuple[str, ...]
    """Why it is refused; empty where it is accepted."""
    probes: tuple[ProbeResult, ...]
    measurements: tuple[Measurement, ...]
    """The unmodified code against itself."""
    notes: tuple[str, ...]
    sandbox: str
    ran: bool = True
    """Whether programs were run; builds alone can refuse a task, and never accept one."""

    @property
    def accepted(self) -> bool:
        return self.ran and not self.reasons

    def to_json(self) -> dict[str, Any]:
        first = self.measurements[0] if self.measurements else None
        return {
            "schema": SCHEMA,
            "task": self.task,
            "accepted": self.accepted,
            "ran": self.ran,
            "reasons": list(self.reasons),
            "baseline": {
                "samples_s": [pair.base.time_s for pair in first.pairs] if first else [],
                "median_s": first.base_s if first else None,
                "noise": first.base_noise if first else None,
                "noise_floor": first.noise_floor if first else None,
            },
            "probes": [vars(probe) for probe in self.probes],
            "notes": list(self.notes),
            "provenance": {"sandbox": self.sandbox},
        }


async def accept(
    task: Task,
    sandbox: Sandbox,
    *,
    seed: int | None = None,
    keep: bool = False,
    device: int | None = None,
    time_budget_s: float | None = None,
    progress: Progress = lambda _: None,
) -> Acceptance:
    """Try every probe on a task, on the first visible accelerator or on `device`. `time_budget_s` is for the comparison of
    the unmodified code with itself, by default the task's own; one that it ends has fewer pairs, and says so.

    Raises TaskError where the unmodified program is not sound by itself.
    """
    async with Workshop(task, sandbox, keep, device=device) as shop:
        baseline = await open_judged(shop, progress)
        probes = [
            result
            for region in task.region
            for kind in KINDS
            for result in await _probe(baseline, region, kind, progress)
        ]
        unchanged, measurements = await _unchanged(baseline, random.Random(seed), time_budget_s, progress)
        probes.append(unchanged)
        notes = [*shop.notes, *_unparsed(shop)]
        acceptance = Acceptance(
            task.name, tuple(_refusals(task, probes)), tuple(probes), tuple(measurements), tuple(notes), sandbox.name
        )
        remember(task, shop.arch, acceptance.to_json())
        return acceptance


async def accept_builds(
    task: Task, sandbox: Sandbox, *, keep: bool = False, progress: Progress = lambda _: None
) -> Acceptance:
    """What of the acceptance test needs no device: the original builds, a syntax error in a region breaks the build, and
    the texts that a run must reject compile. It refuses; it never accepts, and nothing is remembered.

    Raises TaskError where the unmodified code does not build.
    """
    async with Workshop(task, sandbox, keep) as shop:
        baseline = Baseline(shop, await build_original(shop, progress), {}, {}, ())
        probes = [
            result
            for region in task.region
            for kind in KINDS
            for result in await _probe(baseline, region, kind, progress, _builds)
        ]
        notes = (*shop.notes, *_unparsed(shop))
        return Acceptance(task.name, tuple(_refusals(task, probes)), tuple(probes), (), notes, sandbox.name, ran=False)


Judge = Callable[[Baseline, Candidate], Awaitable[tuple[Outcome | None, str]]]
"""What becomes of a probe's text, with the reason; None where it was built and that is all that was asked."""


async def _probe(
    baseline: Baseline, region: Region, kind: str, progress: Progress, judge: Judge | None = None
) -> list[ProbeResult]:
    text = baseline.shop.spans[region.name].text
    given = getattr(region.probes, kind, None)
    probes = [Probe(kind, "given", given)] if given is not None else derive(kind, text, baseline.task.language)
    results = []
    for probe in probes:
        progress(f"probe {kind}, region {region.name}, {probe.target}")
        results.append(await _try(baseline, region.name, probe, judge or outcome_of))
    return results


async def _try(baseline: Baseline, region: str, probe: Probe, judge: Judge) -> ProbeResult:
    if probe.text is None:
        return ProbeResult(probe.kind, region, probe.target, "not_applicable", None, probe.reason)
    outcome, reason = await judge(baseline, Candidate({region: probe.text}))
    status: Status = "passed" if outcome is not Outcome.CORRECT else "failed"
    if probe.kind == "broken":
        status = "passed" if outcome is Outcome.BUILD_FAILED else "failed"
    elif outcome is None:
        status = "built"
    elif outcome is Outcome.BUILD_FAILED:
        status = "not_applicable"
        reason = f"its text does not compile here: {reason.strip()[-200:]}"
    elif outcome is Outcome.CORRECT:
        reason = "every check passed all the same"
    said = outcome.value if outcome is not None else None
    return ProbeResult(probe.kind, region, probe.target, status, said, reason.strip()[:300])


async def _builds(baseline: Baseline, candidate: Candidate) -> tuple[Outcome | None, str]:
    try:
        await build(baseline, candidate)
    except CandidateFailed as failure:
        return failure.outcome, failure.reason
    return None, "it was built, and not run"


async def outcome_of(baseline: Baseline, candidate: Candidate) -> tuple[Outcome, str]:
    """What checks alone say of a candidate on every shown and held-out run; nothing is screened or timed."""
    task = baseline.task
    try:
        built = await build(baseline, candidate)
        await try_runs(baseline, built, (*task.shown, *baseline.others), lambda _: None)
    except CandidateFailed as failure:
        return failure.outcome, failure.reason
    except CandidateError as error:
        return Outcome.REFUSED, str(error)
    return (Outcome.CORRECT, "") if task.check else (Outcome.UNVERIFIED, "the task has no check")


async def _unchanged(
    baseline: Baseline, rng: random.Random, time_budget_s: float | None, progress: Progress
) -> tuple[ProbeResult, list[Measurement]]:
    """The unmodified code against a second build of itself; failing needs two comparisons that say so.

    Raises TaskError where it fails now and then, whichever of the two builds it is.
    """
    try:
        return await _compared_with_itself(baseline, rng, time_budget_s or baseline.task.verify.budget_s, progress)
    except CandidateFailed as failure:
        raise TaskError(
            f"{baseline.task.path}: the unmodified program, built once more, failed: {failure.reason}",
            "a baseline that passes every time",
            "the run by hand in the repository, some times",
        ) from None


async def _compared_with_itself(
    baseline: Baseline, rng: random.Random, time_budget_s: float, progress: Progress
) -> tuple[ProbeResult, list[Measurement]]:
    task = baseline.task
    built = await build(baseline, Candidate())
    measurements: list[Measurement] = []
    for attempt in (1, 2):
        progress(f"probe unchanged, comparison {attempt}")
        measurements.append(
            await compare(
                baseline, built, task.shown[0], EVALUATE, rng=rng, time_budget_s=time_budget_s, progress=progress
            )
        )
        if measurements[-1].comparison not in (Comparison.FASTER, Comparison.SLOWER):
            return ProbeResult("unchanged", "all", "all", "passed", "correct", measurements[-1].sentence), measurements
    said = "; ".join(measurement.sentence for measurement in measurements)
    return ProbeResult(
        "unchanged", "all", "all", "failed", "correct", f"called different from itself twice: {said}"
    ), measurements


def _refusals(task: Task, probes: Sequence[ProbeResult]) -> list[str]:
    """Required: broken, trap and unchanged pass, and null or constant passes, in every region."""
    reasons = []
    for region in task.region:
        mine = [probe for probe in probes if probe.region == region.name]
        for kind, hint in (
            ("broken", "the region is not what gets compiled"),
            ("trap", "the region is never run, or no check looks at what it gives"),
        ):
            bad = [probe for probe in mine if probe.probe == kind and probe.status == "failed"]
            reasons += [f"region {region.name!r}, probe {kind} ({probe.target}): {hint}" for probe in bad]
            if all(probe.status == "not_applicable" for probe in mine if probe.probe == kind):
                reasons.append(f"region {region.name!r}: no probe {kind} could be made; give one in region.probes")
        shown = [probe for probe in mine if probe.probe in ("null", "constant")]
        failed = [probe for probe in shown if probe.status == "failed"]
        caught = {probe.target for probe in shown if probe.status in ("passed", "built")}
        reasons += [
            f"region {region.name!r}, probe {probe.probe} ({probe.target}) is called correct: the checks do not see "
            "what the region computes"
            for probe in failed
            if probe.target not in caught
        ]
        if not caught and not failed:
            reasons.append(
                f"region {region.name!r}: neither a null nor a constant probe could be made; give one in region.probes"
            )
    reasons += [
        f"probe unchanged: {probe.reason}"
        for probe in probes
        if probe.probe == "unchanged" and probe.status == "failed"
    ]
    return reasons


def _unparsed(shop: Workshop) -> list[str]:
    notes = []
    for file in sorted({span.file for span in shop.spans.values()}):
        names = unparsed_kernels((shop.pristine / file).read_bytes(), shop.task.language)
        if names:
            notes.append(f"{file}: a regular expression sees kernels that the parser does not: {', '.join(names)}")
    return notes
