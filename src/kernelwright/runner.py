"""Run policies on tasks and have their answers judged; everything is kept as it happens, so any run can go on later.

`optimize` is one task and some attempts: each attempt is a rollout over tools with a workshop of their own; then the best
answer goes to the verifier, which starts from its own pristine baseline, and where it is not proven faster the next
best. What is reported is the verifier's word only. Nothing found is a result too: the original, `same`, 1.0.
"""

from __future__ import annotations

import json
import os
import platform
import random
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernelwright.approval import Approval
from kernelwright.chat import Briefing, RegionText, candidates_of
from kernelwright.checks import read_time
from kernelwright.execute import Workshop
from kernelwright.measure import ADVISE, PROVE, estimate_s, seconds
from kernelwright.policy import Policy
from kernelwright.proving import prove_best
from kernelwright.rollout import RolloutLimits, rollout
from kernelwright.sandbox import Sandbox
from kernelwright.source import to_lf
from kernelwright.store import Run, Store
from kernelwright.task import ExitCodeCheck, FileCheck, NumberCheck, PatternCheck, RowCheck, Task
from kernelwright.toolbox import Toolbox
from kernelwright.toolchain.devices import visible_gpus
from kernelwright.tools import NAMES, Bench
from kernelwright.trace import Message
from kernelwright.trial import Baseline, Progress, exclusive, open_baseline

BASELINE_RUNS = 5
"""Runs of the original whose median a policy is told as the baseline time."""


@dataclass(frozen=True)
class Options:
    """How `optimize` was asked to search. None is no limit."""

    policy: str
    attempts: int = 1
    max_calls: int = 8
    time_limit_s: float | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    seed: int = 0
    tools: tuple[str, ...] = NAMES
    settings: dict[str, Any] | None = None
    """What else made the policy: model, base URL, prices."""
    approve: bool = False
    """Whether a person is asked about each piece of generated code before it is compiled or run."""

    def limits(self) -> RolloutLimits:
        return RolloutLimits(
            max_calls=self.max_calls,
            time_limit_s=self.time_limit_s,
            max_tokens=self.max_tokens,
            max_cost_usd=self.max_cost_usd,
        )


@dataclass(frozen=True)
class Watcher:
    """Who is told of a run's progress: what is going on, each message, what it will cost."""

    progress: Progress = lambda _: None
    on_message: Callable[[int, Message], None] = lambda _attempt, _message: None
    on_estimate: Callable[[str], None] = lambda _: None


async def optimize(
    task: Task,
    sandbox: Sandbox,
    policy: Policy,
    options: Options,
    store: Store,
    run: Run,
    watcher: Watcher,
    keep: bool = False,
    approval: Approval | None = None,
) -> dict[str, Any]:
    """Search, then prove; returns what `--json` prints and keeps it in the store.

    Attempts that already ended in `run` are not made again; one that was cut off goes on from its last message.
    """
    done = {attempt.attempt for attempt in store.attempts(run.id)}
    missing = [attempt for attempt in range(options.attempts) if attempt not in done]
    if missing:
        async with Workshop(task, sandbox, keep, approval) as shop:
            baseline = await open_baseline(shop, task.shown, watcher.progress)
            base_s, wall_s = await _baseline_time(baseline, watcher.progress)
            watcher.on_estimate(estimate(task, baseline, options, wall_s, len(missing)))
            briefing = briefing_of(baseline, base_s, options)
            for attempt in missing:
                await _attempt(baseline, briefing, policy, options, store, run, attempt, watcher)
    result = await prove_best(task, sandbox, store, run, watcher.progress, keep, approval)
    store.save_result(run.id, "optimize", result)
    store.set_status(run.id, "done")
    return result


async def _attempt(
    baseline: Baseline,
    briefing: Briefing,
    policy: Policy,
    options: Options,
    store: Store,
    run: Run,
    attempt: int,
    watcher: Watcher,
) -> None:
    so_far = store.messages(run.id, attempt)
    seed = options.seed + attempt
    bench = Bench(baseline, random.Random(f"{seed}/{len(so_far)}"), watcher.progress, candidates_of(so_far))
    regions = {name: span.text for name, span in baseline.shop.spans.items()}
    approval = baseline.shop.approval
    toolbox = Toolbox(
        bench.tools(options.tools),
        regions,
        baseline.task.language,
        waited_s=lambda: approval.waited_s if approval is not None else 0.0,
    )

    def keep_message(message: Message) -> None:
        store.append_message(run.id, attempt, message)
        watcher.on_message(attempt, message)

    watcher.progress(f"attempt {attempt + 1}: asking {policy.name}")
    trace = await rollout(
        briefing, policy, toolbox, options.limits(), seed=seed, messages=so_far, on_message=keep_message
    )
    assert trace.stop is not None
    store.finish_attempt(run.id, attempt, trace.stop, trace.answer)


async def _baseline_time(baseline: Baseline, progress: Progress) -> tuple[float, float]:
    """Median time and wall time in seconds of the first shown run."""
    task, results = baseline.task, []
    async with exclusive(baseline.shop, progress):
        for number in range(BASELINE_RUNS):
            progress(f"timing the original: run {number + 1} of {BASELINE_RUNS}")
            results.append(await baseline.shop.run(baseline.built, task.shown[0]))
    times = [read_time(task, result) for result in results]
    return statistics.median(times), statistics.median(result.job.outside_s for result in results)


def estimate(task: Task, baseline: Baseline, options: Options, wall_s: float, attempts: int) -> str:
    """What the search and the proof will take, in words, before either starts."""
    a_call = baseline.built.build_s + len(task.shown) * wall_s + estimate_s(ADVISE, wall_s).worst_s
    proof = estimate_s(PROVE, wall_s)
    most = min(proof.worst_s, task.verify.budget_s)
    return (
        f"the original takes {seconds(wall_s)}; at most {attempts * options.max_calls} benchmark calls of about "
        f"{a_call:.1f} s, then a proof of {min(proof.best_s, most):.0f} to {most:.0f} s"
    )


def briefing_of(baseline: Baseline, base_s: float, options: Options) -> Briefing:
    """The paper's five inputs for this task on this machine."""
    task, shop = baseline.task, baseline.shop
    regions = {
        name: RegionText(span.file, span.first_line, span.last_line, span.text) for name, span in shop.spans.items()
    }
    files = {file: to_lf((shop.pristine / file).read_bytes()) for file in {span.file for span in shop.spans.values()}}
    return Briefing(
        task.name,
        task.language,
        platform_of(task, shop.arch),
        shop.arch,
        regions,
        files,
        base_s,
        task.build.flags,
        task.build.tunables,
        task.forbid_flags,
        task.min_effect,
        options.max_calls,
        checks_in_words(task),
    )


def platform_of(task: Task, arch: str) -> str:
    """The device in words, as in "NVIDIA H200, sm_90" or a CPU's model with its cores."""
    if task.language != "cpp":
        gpus = visible_gpus("amd" if task.language == "hip" else "nvidia")
        return f"{gpus[0].name}, {arch}" if gpus else f"no GPU here, {arch}"
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as info:
            model = next(
                (line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine()
            )
    except OSError:
        model = platform.machine()
    return f"{model}, {os.cpu_count()} cores"


def checks_in_words(task: Task) -> str:
    said = {
        ExitCodeCheck: "its exit code",
        PatternCheck: "what it says of itself",
        NumberCheck: "numbers that it prints",
        FileCheck: "the files that it writes",
        RowCheck: "rows of its tables",
    }
    return ", ".join(dict.fromkeys(said[type(check)] for check in task.check)) + " must be right, within tolerances."


def options_json(options: Options) -> dict[str, Any]:
    """The options as the store gives them back."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(options)))
    return plain
