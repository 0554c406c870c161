"""One candidate beside its original: the runs that show whether it is right, and the samples that show how fast it is.

Tools and the verifier both build a `Baseline` from a workshop and try candidates against it; what a trial is worth is
decided elsewhere (`verify`), or only reported (`tools`). A candidate that fails raises `CandidateFailed` at the point of
failure, and the caller turns it into an outcome.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from kernelwright import measure
from kernelwright.analysis import expand_macros
from kernelwright.checks import RunResult, Unreadable, evaluate, read_time
from kernelwright.errors import TaskError
from kernelwright.execute import BuildFailure, Built, Workshop, failure_of
from kernelwright.limits import fastest_possible, learn
from kernelwright.measure import KERNEL_S, Budget, Measurement, Pair, Sample
from kernelwright.outcome import CheckResult, Outcome
from kernelwright.references import reference_run
from kernelwright.screen import screen
from kernelwright.slots import available_cores, slot
from kernelwright.source import find_functions
from kernelwright.task import Run, Task
from kernelwright.tolerance import MEASURABLE
from kernelwright.toolchain.arguments import check_arguments
from kernelwright.toolchain.kernel_time import KernelTime
from kernelwright.toolchain.symbols import demangled_name
from kernelwright.trace import Candidate
from kernelwright.variation import OwnVariation, beyond_variation

Progress = Callable[[str], None]
"""Told what is going on, in a few words."""


class CandidateFailed(Exception):
    """A candidate's failure on its way to becoming an outcome."""

    def __init__(self, outcome: Outcome, reason: str, checks: Sequence[CheckResult] = ()) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.checks = tuple(checks)


@dataclass(frozen=True)
class Baseline:
    """The unmodified program, built, and what each of its runs left; candidates' outputs are compared with these."""

    shop: Workshop
    built: Built
    results: dict[str, RunResult]
    references: dict[str, RunResult]
    others: tuple[Run, ...]
    """Runs that no tool shows: the task's held-out ones, or other inputs found where it has none."""
    variation: OwnVariation = field(default_factory=OwnVariation)
    """How far versions of the original lie apart, in the runs where that was asked."""

    @property
    def task(self) -> Task:
        return self.shop.task


async def build_original(shop: Workshop, progress: Progress) -> Built:
    """The original, with the macros expanded that its regions name. Raises TaskError where it does not build."""
    progress("building the original")
    built = await shop.build_baseline()
    if any(region.expand_macros for region in shop.task.region):
        progress("expanding macros")
        await expand_macros(shop)
        built = await shop.build_baseline()
    return built


async def open_baseline(
    shop: Workshop, runs: Sequence[Run], progress: Progress, like: Baseline | None = None
) -> Baseline:
    """Build the original and make each of `runs` twice; the second run is checked against the first. Where `like` is the
    same program on the same machine, what its runs left is taken over and nothing is run.

    Raises TaskError, with the numbers, where the unmodified program does not build, run, print its time or pass.
    """
    built = await build_original(shop, progress)
    if like is not None and like.built.artifact == built.artifact:
        shop.notes = list(like.shop.notes)
        return replace(like, shop=shop, built=built, variation=like.variation.of_another())
    references: dict[str, RunResult] = {}
    for run in shop.task.references:
        progress(f"running the reference: {run.name}")
        references[run.name] = await reference_run(shop, built, run)
        if failure := failure_of(references[run.name], run.timeout_s):
            raise TaskError(
                f"{shop.task.path}: the reference {failure[1]}",
                "a reference run that ends by itself",
                "the run by hand in the repository",
            )
    baseline = Baseline(shop, built, {}, references, tuple(run for run in runs if run.role == "held_out"))
    for run in runs:
        progress(f"running the original: {run.name}")
        first = await shop.run(built, run)
        require_sound(baseline, run, first, None)
        if run is shop.task.shown[0]:
            await _require_above_floor(baseline, read_time(shop.task, first), progress)
        baseline.results[run.name] = first
        await require_repeatable(baseline, run, first, await shop.run(built, run), progress)
    return baseline


async def require_repeatable(
    baseline: Baseline, run: Run, first: RunResult, again: RunResult, progress: Progress
) -> None:
    """The original's second run must be right beside its first, by tolerances that are measured now where the task wants
    that. Raises TaskError."""
    checks = baseline.task.check
    if any(getattr(check, "rel", None) == "measured" for check in checks):
        progress(f"measuring how far versions of the original lie apart: {run.name}")
        results = (first, again)
        found = await baseline.variation.measure(baseline.shop, baseline.built, run, results, baseline.references)
        wide = [at for at in found if getattr(checks[at], "rel", None) == "measured" and not found[at].tells]
        if wide:
            raise TaskError(
                f"{baseline.task.path}: the check {checks[wide[0]].kind} of run {run.name!r} tells nothing: {found[wide[0]]}",
                f"results that repeat within rel {MEASURABLE:g}",
                "other numbers, or a stated rel and abs",
            )
    require_sound(baseline, run, again, first)


async def beyond_own_variation(baseline: Baseline, built: Built, run: Run, progress: Progress) -> str | None:
    """In a sentence, where a candidate's numbers in a run that it passed lie far beyond what the original's own runs and
    re-associated builds differ by, as those of a lower precision do within a wide stated tolerance.

    Costs one run; only where the candidate's numbers differ by more than roundings, once in a baseline, some builds of the
    original too.
    """
    shop, first, references = baseline.shop, baseline.results[run.name], baseline.references
    progress(f"comparing the precision of {run.name}")
    result = await shop.run(built, run)
    if failure_of(result, run.timeout_s) or not beyond_variation(shop, run, result, first, references):
        return None
    measured = await baseline.variation.measure(shop, baseline.built, run, (first,), references)
    return beyond_variation(shop, run, result, first, references, measured)


def require_sound(baseline: Baseline, run: Run, result: RunResult, first: RunResult | None) -> None:
    where = f"{baseline.task.path}: the unmodified program, run {run.name!r}"
    try:
        checks = judge_run(baseline, run, result, first)
        if run.role == "shown":
            read_time(baseline.task, result)
    except CandidateFailed as failure:
        worst = next((check for check in failure.checks if not check.passed), None)
        said = f"fails the check {worst.check}: {worst.detail}" if worst else f"fails: {failure.reason}"
        if worst and worst.check == "exit_code":
            said += f"; its output ends with {result.text.strip()[-300:]!r}"
        try_ = "a wider tolerance (rel, abs) in this check" if first and worst else "the run by hand in the repository"
        raise TaskError(f"{where} {said}", "a baseline that passes its own checks", try_) from None
    except Unreadable as reason:
        raise TaskError(
            f"{where}: {reason}",
            "a time that can be read from every shown run",
            'another [time] pattern, or source = "wall"',
        ) from None
    if first is not None and not checks and baseline.task.check:
        raise TaskError(
            f"{where} is reached by none of the checks",
            "a check that reads each run's output",
            "a check of kind exit_code",
        )


async def _require_above_floor(baseline: Baseline, time_s: float, progress: Progress) -> None:
    """The floor is a statement about the first shown run; an original below it says that the statement is wrong."""
    task = baseline.task
    note = await learn_limits(baseline, time_s, progress)
    if note is not None:
        baseline.shop.notes.append(note)
    limit = fastest_possible(task, baseline.shop.arch)
    if limit is not None and task.time.better == "lower" and time_s < limit.least_s:
        raise TaskError(
            f"{task.path}: the unmodified program's {time_s:.3g} s lie below the {limit.least_s:.3g} s that [floor] allows "
            f"here ({limit.basis})",
            "bytes and flops that one timed unit cannot do without",
            "smaller numbers in [floor]",
        )


async def learn_limits(baseline: Baseline, time_s: float, progress: Progress) -> str | None:
    """What the device can do at its best, measured where it is not known well enough to judge `time_s` (`limits.learn`)."""
    shop = baseline.shop

    def hold() -> AbstractAsyncContextManager[None]:
        progress("measuring what the device can do at its best")
        return exclusive(shop, progress)

    return await learn(shop.task, shop.arch, time_s, shop.sandbox, hold)


def judge_run(baseline: Baseline, run: Run, result: RunResult, base: RunResult | None) -> list[CheckResult]:
    """All checks of one finished run. Raises CandidateFailed where it crashed, ran too long or did not pass."""
    if failure := failure_of(result, run.timeout_s):
        raise CandidateFailed(*failure)
    checks = evaluate(baseline.task, run, result, base, baseline.references, baseline.variation.known(run))
    failed = [check for check in checks if check.passed is False]
    if failed:
        raise CandidateFailed(
            Outcome.WRONG_RESULT, f"run {run.name!r}, check {failed[0].check}: {failed[0].detail}", checks
        )
    return checks


@dataclass(frozen=True)
class Refused:
    """Why screening says no, in one sentence; see `screen.Refusal.unreadable`."""

    sentence: str
    unreadable: bool = False


def refuse(shop: Workshop, candidate: Candidate) -> Refused | None:
    """What screening says: of the compile arguments first, then of the structure of each file."""
    task = shop.task
    said = check_arguments(
        task.language, candidate.compile_args, tunables=task.build.tunables, forbid=task.forbid_flags
    )
    if said:
        return Refused(said)
    if candidate.compile_args and not shop.places_arguments:
        return Refused(
            "compile arguments cannot be placed: the build's compilers are not seen, and its command has no {flags}"
        )
    for name, text in candidate.code.items():
        if not _storable(text):
            return Refused(f"the text of region {name!r} holds half of a surrogate pair, which no source file can hold")
    for file, whole in shop.spliced(candidate.code).items():
        regions = [
            (span, candidate.code[name])
            for name, span in shop.spans.items()
            if span.file == file and name in candidate.code
        ]
        elsewhere = [
            candidate.code[name] for name, span in shop.spans.items() if span.file != file and name in candidate.code
        ]
        original = (shop.pristine / file).read_bytes()
        if regions and (refusal := screen(task.language, original, whole, regions, shop.read_beside(file), elsewhere)):
            return Refused(str(refusal), refusal.unreadable)
    return None


async def require_screened(baseline: Baseline, candidate: Candidate, purpose: str) -> None:
    """Raises CandidateFailed where screening says no, or then a person who is asked. Of what could not be read at all, the
    compiler's word counts first: a missing semicolon is a failed build, not a cheat; what compiles and cannot be read stays
    refused. `purpose` is what the person is told that the candidate is for."""
    refusal = refuse(baseline.shop, candidate)
    if refusal is not None and not refusal.unreadable:
        raise CandidateFailed(Outcome.REFUSED, refusal.sentence)
    if said := await baseline.shop.not_approved(candidate, purpose):
        raise CandidateFailed(Outcome.REFUSED, said)
    if refusal is not None:
        await build(baseline, candidate)
        raise CandidateFailed(Outcome.REFUSED, refusal.sentence)


def _storable(text: str) -> bool:
    try:
        text.encode("utf-8", errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


async def build(baseline: Baseline, candidate: Candidate, slot_name: str = "candidate") -> Built:
    """Raises CandidateFailed with the compiler's words where the candidate does not build."""
    built = await baseline.shop.build(candidate, slot_name)
    if isinstance(built, BuildFailure):
        raise CandidateFailed(built.outcome, built.log)
    return built


async def try_runs(baseline: Baseline, built: Built, runs: Sequence[Run], progress: Progress) -> list[CheckResult]:
    """Each run once, checked against the original's. Raises CandidateFailed at the first that is not right."""
    checks: list[CheckResult] = []
    for run in runs:
        progress(f"checking {run.name}")
        checks += judge_run(baseline, run, await baseline.shop.run(built, run), baseline.results[run.name])
    return checks


async def sample(baseline: Baseline, built: Built, run: Run, *, recorded: bool = False) -> Sample:
    """One timed run, its outputs checked too; with its kernels' times instead of a true time of its own if `recorded`."""
    cpus = available_cores() if baseline.task.language == "cpp" else ()
    result = await baseline.shop.run(built, run, cpus, recorded=recorded)
    judge_run(baseline, run, result, baseline.results[run.name])
    try:
        time_s = read_time(baseline.task, result)
    except Unreadable as reason:
        raise CandidateFailed(Outcome.WRONG_RESULT, f"run {run.name!r}: {reason}") from None
    extra: dict[str, Any] = {}
    kernel_s = region_kernel_time(baseline.shop, built, result.kernels)
    if kernel_s is not None:
        extra[KERNEL_S] = kernel_s
    return Sample(time_s, result.job.wall_s, result.job.cpu_s, extra)


def region_kernel_time(shop: Workshop, built: Built, kernels: Sequence[KernelTime] | None) -> float | None:
    """Seconds that the device spent in kernels defined in a region, over all launches of one run; None where unknown."""
    if not kernels:
        return None
    names = {
        function.name
        for text in built.regions.values()
        for function in find_functions(text.encode(errors="surrogateescape"), shop.task.language)
        if function.kernel
    }
    times = [kernel.total_s for kernel in kernels if demangled_name(kernel.name) in names]
    return sum(times) if times else None


@asynccontextmanager
async def exclusive(shop: Workshop, progress: Progress, alone: bool = False) -> AsyncIterator[None]:
    """The device, or all cores of this machine, for timed runs; `alone` also holds the cores where a device is timed, as is
    done where it is the process that is timed: builds beside it make that three times as noisy (docs/experiments/pool.md)."""
    async with AsyncExitStack() as held:
        if shop.device is not None:
            await held.enter_async_context(slot("gpu", (shop.device,), on_wait=progress))
        if shop.device is None or alone or shop.task.time.source == "wall":
            await held.enter_async_context(slot("cpu", available_cores(), on_wait=progress))
        yield


async def compare(
    baseline: Baseline,
    built: Built,
    run: Run,
    budget: Budget,
    *,
    rng: random.Random,
    time_budget_s: float | None,
    progress: Progress,
    on_pair: Callable[[Pair, int], None] | None = None,
) -> Measurement:
    """Original and candidate timed in pairs, the machine's slot held; kernels in the warm-ups. Raises CandidateFailed."""

    async def base(recorded: bool = False) -> Sample:
        try:
            return await sample(baseline, baseline.built, run, recorded=recorded)
        except CandidateFailed as failure:
            raise TaskError(
                f"{baseline.task.path}: the unmodified program failed in a timed run: {failure.reason}",
                "a baseline that passes every time",
                "kernelwright check",
            ) from None

    async def candidate(recorded: bool = False) -> Sample:
        return await sample(baseline, built, run, recorded=recorded)

    def told(pair: Pair, count: int) -> None:
        progress(f"timing {run.name}: pair {count} of at most {budget.schedule.pairs}")
        if on_pair:
            on_pair(pair, count)

    progress(f"timing {run.name}: warm-up")
    # Asking the driver for the device's state takes as long as a run; advice, which proves nothing, does without.
    device = baseline.shop.device if budget.schedule.alpha is not None else None
    async with exclusive(baseline.shop, progress, budget.alone):
        return await measure.compare(
            base,
            candidate,
            budget,
            min_effect=baseline.task.min_effect,
            rng=rng,
            warm_up=(partial(base, recorded=True), partial(candidate, recorded=True)),
            time_budget_s=time_budget_s,
            on_pair=told,
            gpu=device,
        )
