"""What a policy is told of a task on the machine where its tools run: the paper's five inputs, and what a run takes."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.chat import Briefing, RegionText
from kernelwright.checks import read_time
from kernelwright.source import to_lf
from kernelwright.task import ExitCodeCheck, FileCheck, NumberCheck, PatternCheck, RowCheck, Task
from kernelwright.toolchain.devices import visible_gpus
from kernelwright.trial import Baseline, Progress, exclusive

BASELINE_RUNS = 5
"""Runs of the original whose median a policy is told as the baseline time."""


@dataclass(frozen=True)
class Brief:
    """A briefing, and seconds that a run (its start included) and a build of the original take."""

    briefing: Briefing
    wall_s: float
    build_s: float

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Brief:
        """From what `dataclasses.asdict` made of one, through JSON."""
        told = dict(data["briefing"])
        told["regions"] = {name: RegionText(**region) for name, region in told["regions"].items()}
        for name in ("flags", "forbid_flags"):
            told[name] = tuple(told[name])
        told["tunables"] = {name: tuple(values) for name, values in told["tunables"].items()}
        return Brief(Briefing(**told), data["wall_s"], data["build_s"])


async def brief(baseline: Baseline, progress: Progress) -> Brief:
    """Time the original, and say all that a policy is told."""
    base_s, wall_s = await _baseline_time(baseline, progress)
    return Brief(briefing_of(baseline, base_s), wall_s, baseline.built.build_s)


async def _baseline_time(baseline: Baseline, progress: Progress) -> tuple[float, float]:
    """Median time and wall time in seconds of the first shown run."""
    task, results = baseline.task, []
    async with exclusive(baseline.shop, progress):
        for number in range(BASELINE_RUNS):
            progress(f"timing the original: run {number + 1} of {BASELINE_RUNS}")
            results.append(await baseline.shop.run(baseline.built, task.shown[0]))
    times = [read_time(task, result) for result in results]
    return statistics.median(times), statistics.median(result.job.outside_s for result in results)


def briefing_of(baseline: Baseline, base_s: float) -> Briefing:
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
        checks=checks_in_words(task),
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
