"""The paired protocol: original and candidate run next to each other in random order until the answer is clear.

The baseline is timed again beside every candidate, because clocks drift and neighbours come and go; a stored time is
never compared against. Three budgets share this one protocol:

    ADVISE     2 pairs; times, estimate and noise floor; never an answer.
    EVALUATE   8 pairs, always; an answer needs all eight to agree in direction: alpha 2/256, false "faster" 0.4 %.
    PROVE      looks at 10, 14, 20, 36 and 64 pairs, alpha 0.002 each: false "faster" at most 0.5 % in the whole procedure.

The false-"faster" rates are bounds, not estimates: a fair coin orders every pair, so they hold for an unchanged
candidate in any noise (`kernelwright.stats`). docs/experiments/comparison.md has the simulation and the real runs.

What one sample is (a fresh process in the sandbox, its time read, its outputs checked), who holds the machine meanwhile
(`kernelwright.slots`) and what an answer is worth are the caller's business. A sampler that raises ends the comparison.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kernelwright import stats
from kernelwright.conditions import Conditions, Watch
from kernelwright.outcome import Comparison, Interval
from kernelwright.stats import Ratio, Schedule

KERNEL_S = "kernel_s"
"""The key of `Sample.extra` under which the region's kernel time in seconds stands, where it could be had."""

TOO_FEW_DIGITS = "the times have too few digits to tell small differences: their steps are above the least effect"


@dataclass(frozen=True)
class Sample:
    """One run. `time_s` is the task's own time (a rate is given as its reciprocal); `wall_s`, `cpu_s` the process's."""

    time_s: float
    wall_s: float
    cpu_s: float
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.time_s > 0 and math.isfinite(self.time_s)):
            raise ValueError(f"a sample's time must be a positive number of seconds, not {self.time_s}")


Sampler = Callable[[], Awaitable[Sample]]


@dataclass(frozen=True)
class Pair:
    """One run of each, next to each other."""

    base: Sample
    candidate: Sample
    candidate_first: bool

    def to_json(self) -> dict[str, Any]:
        return {"base": vars(self.base), "candidate": vars(self.candidate), "candidate_first": self.candidate_first}


@dataclass(frozen=True)
class Budget:
    """How much certainty is bought: a schedule, and how many warm-ups of each (run, recorded, never counted)."""

    name: str
    schedule: Schedule
    warm_ups: int = 1
    alone: bool = False
    """Whether nothing is compiled beside a timed run on a device; on the cores nothing ever is."""


ADVISE = Budget("advise", Schedule((2,), None))
EVALUATE = Budget("evaluate", Schedule((8,), 2 / 256))
PROVE = Budget("prove", Schedule((10, 14, 20, 36, 64), 0.002), alone=True)


BUDGETS = {budget.name: budget for budget in (ADVISE, EVALUATE, PROVE)}


class StopReason(StrEnum):
    DECIDED = "decided"
    ALL_PAIRS = "all_pairs"
    TIME_BUDGET = "time_budget"


@dataclass(frozen=True)
class Look:
    """What was seen after so many pairs."""

    pairs: int
    interval: Interval | None
    answer: Comparison

    def to_json(self) -> dict[str, Any]:
        bounds = [self.interval.low, self.interval.high] if self.interval else None
        return {"pairs": self.pairs, "interval": bounds, "answer": self.answer.value}


@dataclass(frozen=True)
class Measurement:
    """A finished comparison with everything it was made from. Ratios are t_base / t_candidate; above 1 is faster."""

    budget: Budget
    min_effect: float
    comparison: Comparison | None
    """None from a budget that never decides."""
    time: Ratio
    """The task's own time, which alone decides; the next three are secondary and use the same pairs."""
    wall: Ratio | None
    cpu: Ratio | None
    kernel: Ratio | None
    """From the pairs, warm-ups too, whose kernels were timed; None where there is none."""
    looks: tuple[Look, ...]
    stop: StopReason
    pairs: tuple[Pair, ...]
    warm_ups: tuple[Pair, ...]
    elapsed_s: float
    conditions: Conditions
    warnings: tuple[str, ...]

    @property
    def speedup(self) -> float:
        return self.time.estimate

    @property
    def interval(self) -> Interval | None:
        return self.time.interval

    @property
    def level(self) -> float | None:
        """The confidence of `interval` after correction for all looks; None where there is no interval."""
        return self.budget.schedule.level if self.interval else None

    @property
    def base_s(self) -> float:
        """The original's median time."""
        return statistics.median(pair.base.time_s for pair in self.pairs)

    @property
    def candidate_s(self) -> float:
        return statistics.median(pair.candidate.time_s for pair in self.pairs)

    @property
    def base_noise(self) -> float | None:
        """Spread of the original's times as a fraction; None from a single pair."""
        return stats.relative_noise([pair.base.time_s for pair in self.pairs])

    @property
    def noise_floor(self) -> float | None:
        """The relative difference that chance alone makes likely (95 %) in an estimate like this one."""
        candidate = stats.relative_noise([pair.candidate.time_s for pair in self.pairs])
        if self.base_noise is None or candidate is None:
            return None
        return stats.noise_floor(self.base_noise, candidate, len(self.pairs))

    @property
    def sentence(self) -> str:
        """The answer as a person would say it, with its interval and level."""
        said = f"{self.comparison.value}: " if self.comparison else ""
        text = f"{said}{self.speedup:.4g}×"
        if self.interval and self.level:
            text += f" [{self.interval.low:.4g}, {self.interval.high:.4g}] at {self.level:.1%}"
        text += f" after {len(self.pairs)} pair{'s' if len(self.pairs) > 1 else ''}"
        return text + (", when the time budget ended" if self.stop is StopReason.TIME_BUDGET else "")

    def to_json(self) -> dict[str, Any]:
        """Everything, raw samples included; goes into `Verdict.samples` and into traces."""
        return {
            "schema": 1,
            "budget": self.budget.name,
            "comparison": self.comparison.value if self.comparison else None,
            "speedup": self.speedup,
            "interval": [self.interval.low, self.interval.high] if self.interval else None,
            "level": self.level,
            "min_effect": self.min_effect,
            "base_s": self.base_s,
            "candidate_s": self.candidate_s,
            "base_noise": self.base_noise,
            "noise_floor": self.noise_floor,
            "wall": self.wall.to_json() if self.wall else None,
            "cpu": self.cpu.to_json() if self.cpu else None,
            "kernel": self.kernel.to_json() if self.kernel else None,
            "looks": [look.to_json() for look in self.looks],
            "stop": self.stop.value,
            "elapsed_s": self.elapsed_s,
            "warm_ups": [pair.to_json() for pair in self.warm_ups],
            "pairs": [pair.to_json() for pair in self.pairs],
            "conditions": self.conditions.to_json(),
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class Estimate:
    """How long a comparison takes if its first look decides, and if it goes on to the last."""

    best_s: float
    worst_s: float


def estimate_s(budget: Budget, run_s: float) -> Estimate:
    """From the wall time of one run of the original, its start included; the candidate is taken to be as fast."""
    looks = budget.schedule.looks
    return Estimate(2 * run_s * (budget.warm_ups + looks[0]), 2 * run_s * (budget.warm_ups + looks[-1]))


def seconds(value: float) -> str:
    """A time with a unit that suits its size."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"


async def compare(
    sample_base: Sampler,
    sample_candidate: Sampler,
    budget: Budget,
    *,
    min_effect: float,
    rng: random.Random,
    warm_up: tuple[Sampler, Sampler] | None = None,
    time_budget_s: float | None = None,
    on_pair: Callable[[Pair, int], None] | None = None,
    gpu: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Measurement:
    """Run the protocol. The caller holds the slot; `gpu` names the device whose conditions are recorded.

    `warm_up` samples the warm-ups instead: their times are never counted, so they may bear what disturbs times, as the
    recording of kernels does (docs/experiments/hecbench-cuda.md has by how much).

    `on_pair` is told of each pair and how many there are now. No pair is begun that would probably end after
    `time_budget_s` (warm-ups count), except the first. The budget's end then stands for the next look: it may decide if
    there are pairs enough for the first one (which look comes last does not depend on who is winning, and no look is
    added, so the bounds hold). Whatever a sampler raises passes through.
    """
    watch = await Watch.start(gpu)
    started, schedule = clock(), budget.schedule
    warm_ups = [await _pair(*(warm_up or (sample_base, sample_candidate)), rng) for _ in range(budget.warm_ups)]
    pairs: list[Pair] = []
    looks: list[Look] = []
    stop: StopReason | None = None
    while stop is None:
        pairs.append(await _pair(sample_base, sample_candidate, rng))
        if on_pair:
            on_pair(pairs[-1], len(pairs))
        stop = _why_stop(schedule, len(pairs), clock() - started, len(warm_ups), time_budget_s)
        if schedule.alpha is not None and (len(pairs) in schedule.looks or (stop and len(pairs) > schedule.looks[0])):
            looks.append(_look(pairs, schedule.alpha, min_effect))
            if looks[-1].answer is not Comparison.UNRESOLVED:
                stop = StopReason.DECIDED
    return _measurement(budget, min_effect, pairs, warm_ups, looks, stop, clock() - started, await watch.finish())


def _why_stop(
    schedule: Schedule, pairs: int, elapsed_s: float, warm_ups: int, time_budget_s: float | None
) -> StopReason | None:
    if pairs >= schedule.pairs:
        return StopReason.ALL_PAIRS
    next_end_s = elapsed_s * (1 + 1 / (pairs + warm_ups))
    return StopReason.TIME_BUDGET if time_budget_s is not None and next_end_s > time_budget_s else None


async def _pair(sample_base: Sampler, sample_candidate: Sampler, rng: random.Random) -> Pair:
    if rng.random() < 0.5:
        candidate = await sample_candidate()
        return Pair(await sample_base(), candidate, candidate_first=True)
    base = await sample_base()
    return Pair(base, await sample_candidate(), candidate_first=False)


def _look(pairs: Sequence[Pair], alpha: float, min_effect: float) -> Look:
    interval = _time(pairs, alpha).interval
    said = stats.answer(interval, min_effect)
    if said is Comparison.SAME and _coarse(pairs, min_effect):
        said = Comparison.UNRESOLVED
    return Look(len(pairs), interval, said)


def _time(pairs: Sequence[Pair], alpha: float | None) -> Ratio:
    return stats.ratio([math.log(pair.base.time_s / pair.candidate.time_s) for pair in pairs], alpha)


def _ratio(pairs: Sequence[Pair], read: Callable[[Sample], float | None], alpha: float | None) -> Ratio | None:
    """The ratio of what `read` finds; None where any run lacks it or has a zero, which has no logarithm."""
    base, candidate = [read(pair.base) for pair in pairs], [read(pair.candidate) for pair in pairs]
    if not all(base + candidate):
        return None
    return stats.ratio(stats.log_ratios([b for b in base if b], [c for c in candidate if c]), alpha)


def _coarse(pairs: Sequence[Pair], min_effect: float) -> bool:
    """Whether the times have too few digits for `same`: they repeat, in steps above the least effect or in none."""
    times = [sample.time_s for pair in pairs for sample in (pair.base, pair.candidate)]
    step = stats.resolution(times)
    return len(set(times)) < len(times) and (step is None or step > min_effect * statistics.median(times))


def _measurement(
    budget: Budget, min_effect: float, pairs: list[Pair], warm_ups: list[Pair], looks: list[Look], stop: StopReason,
    elapsed_s: float, conditions: Conditions,
) -> Measurement:  # fmt: skip
    alpha = budget.schedule.alpha
    undecided = None if alpha is None else Comparison.UNRESOLVED
    recorded = [
        pair for pair in (*warm_ups, *pairs) if KERNEL_S in pair.base.extra and KERNEL_S in pair.candidate.extra
    ]
    digits = (TOO_FEW_DIGITS,) if _coarse(pairs, min_effect) else ()
    return Measurement(
        budget=budget,
        min_effect=min_effect,
        comparison=looks[-1].answer if looks else undecided,
        time=_time(pairs, alpha),
        wall=_ratio(pairs, lambda sample: sample.wall_s, alpha),
        cpu=_ratio(pairs, lambda sample: sample.cpu_s, alpha),
        kernel=_ratio(recorded, lambda sample: sample.extra.get(KERNEL_S), alpha) if recorded else None,
        looks=tuple(looks),
        stop=stop,
        pairs=tuple(pairs),
        warm_ups=tuple(warm_ups),
        elapsed_s=elapsed_s,
        conditions=conditions,
        warnings=conditions.warnings + digits,
    )
