"""What many tasks come to: both means, the success rate, and intervals over tasks.

The paper (arXiv 2510.17158, section 4) counts a failure as 0 and takes the arithmetic mean. A user who gets no correct
candidate keeps the original, so the second mean counts a failure, and a slower candidate, as 1 and is geometric. Neither
says what the other does; they always stand together, with the share of tasks that got faster.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kernelwright.outcome import Interval

DRAWS = 10_000
LEVEL = 0.95


@dataclass(frozen=True)
class Mean:
    value: float
    interval: Interval | None
    """Of LEVEL, by the bootstrap over tasks; None below three tasks."""


@dataclass(frozen=True)
class Means:
    tasks: int
    faster: int
    failed: int
    """Tasks without a correct answer."""
    paper: Mean
    """Arithmetic, a failure as 0."""
    gain: Mean
    """Geometric, a failure or a loss as 1."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "success": self.faster / self.tasks}


def means(speedups: Sequence[float | None], faster: int, seed: int = 0) -> Means:
    """Of one speedup a task (original time over the answer's; 1 where the answer is the original; None for a failure).

    `faster` is how many of them were proven. Raises ValueError for no task."""
    if not speedups:
        raise ValueError("no task, so no mean")
    paper = [speedup or 0.0 for speedup in speedups]
    gain = [math.log(max(speedup or 1.0, 1.0)) for speedup in speedups]
    failed = sum(speedup is None for speedup in speedups)
    return Means(
        len(speedups), faster, failed, _mean(paper, float, seed), _mean(gain, math.exp, seed)
    )  # fmt: skip


def _mean(values: Sequence[float], scale: Callable[[float], float], seed: int) -> Mean:
    rng, count = random.Random(seed), len(values)
    if count < 3:
        return Mean(scale(statistics.fmean(values)), None)
    drawn = sorted(statistics.fmean(rng.choices(values, k=count)) for _ in range(DRAWS))
    tail = round(DRAWS * (1 - LEVEL) / 2)
    return Mean(scale(statistics.fmean(values)), Interval(scale(drawn[tail]), scale(drawn[-tail - 1])))
