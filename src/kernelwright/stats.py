"""Pure statistics of paired times: no clock, no process, no randomness; everything about machines is left to `measure`.

A pair is one run of the original and one of the candidate, next to each other in random order; its value is
log(t_base / t_candidate). Because a fair coin chose the order within each pair, the signs of these values are
independent fair coins whenever the two programs are the same, whatever the noise looks like (heavy tails, drift,
neighbours, a second run that is always quicker). So the chance of a false "faster" for an unchanged candidate follows
from the design, not from an assumption. How well the interval covers a real difference does rest on one: that the
values lie symmetrically about it.

Ties and zeros need no correction and get none: the interval is the closed one between two order statistics of the Walsh
averages, with the null distribution of untied ranks. Where times are rounded, so that values tie or are zero, it can
only become wider than asked for, never narrower (a Walsh average that is exactly zero speaks for neither side).

The package takes no dependency for this: n is at most a few dozen, and scipy is the reference in the tests.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from kernelwright.outcome import Comparison, Interval

MAD_TO_SIGMA = 1.4826
"""Standard deviation over median absolute deviation, of a normal distribution: 1 / Φ⁻¹(3/4)."""


@dataclass(frozen=True)
class Schedule:
    """When a comparison looks at its pairs, and how sure it must be at each look.

    `alpha` is the two-sided error of the interval of one look; None for looks that report and never decide. Raises
    ValueError where a look has too few pairs for an interval at its level, since it could never decide anything.
    """

    looks: tuple[int, ...]
    """Numbers of pairs, rising; the last one is the most that are run."""
    alpha: float | None

    def __post_init__(self) -> None:
        if not self.looks or self.looks[0] < 1 or list(self.looks) != sorted(set(self.looks)):
            raise ValueError(f"looks must be rising numbers of pairs, not {self.looks}")
        if self.alpha is not None and not 0 < self.alpha < 1:
            raise ValueError(f"alpha must lie between 0 and 1, not be {self.alpha}")
        if self.alpha is not None and signed_rank_depth(self.looks[0], self.alpha) == 0:
            raise ValueError(f"{self.looks[0]} pairs cannot give an interval at alpha {self.alpha}")

    @property
    def pairs(self) -> int:
        return self.looks[-1]

    @property
    def level(self) -> float | None:
        """The confidence with which the intervals of all looks hold at once (Bonferroni), so also the last one taken."""
        return None if self.alpha is None else 1 - self.alpha * len(self.looks)

    @property
    def false_faster(self) -> float | None:
        """An upper bound of the chance that the whole procedure calls an unchanged candidate faster."""
        return None if self.alpha is None else self.alpha * len(self.looks) / 2


@cache
def signed_rank_counts(n: int) -> tuple[int, ...]:
    """How many of the 2**n sign patterns give each value 0 … n(n+1)/2 of the signed-rank statistic (exact, untied)."""
    counts = [1]
    for rank in range(1, n + 1):
        shifted = [0] * rank + counts
        counts = [a + b for a, b in zip(counts + [0] * rank, shifted, strict=True)]
    return tuple(counts)


@cache
def signed_rank_depth(n: int, alpha: float) -> int:
    """How far from either end the interval's bounds lie among the sorted Walsh averages; 0 where no interval exists.

    The largest k with P(statistic < k) <= alpha / 2 (Hollander & Wolfe, Nonparametric Statistical Methods, 3.3).
    """
    allowed, seen = alpha / 2 * 2**n, 0
    for depth, count in enumerate(signed_rank_counts(n)):
        seen += count
        if seen > allowed:
            return depth
    raise ValueError(f"alpha must be below 1, not {alpha}")


def walsh_averages(values: Sequence[float]) -> list[float]:
    """The means of all pairs of values, each value with itself too, sorted."""
    ordered = sorted(values)
    return sorted([(a + b) / 2 for i, a in enumerate(ordered) for b in ordered[i:]])


def hodges_lehmann(values: Sequence[float]) -> float:
    """The median of the Walsh averages: nearly as precise as the mean in normal noise, and hardly moved by outliers."""
    return statistics.median(walsh_averages(values))


def signed_rank_interval(values: Sequence[float], alpha: float) -> tuple[float, float] | None:
    """The closed interval of the (pseudo)median at level 1 - alpha; None where there are too few values for it."""
    depth = signed_rank_depth(len(values), alpha)
    if depth == 0:
        return None
    averages = walsh_averages(values)
    return averages[depth - 1], averages[-depth]


@dataclass(frozen=True)
class Ratio:
    """t_base / t_candidate: the Hodges–Lehmann estimate, and its interval where there are pairs enough for one."""

    estimate: float
    interval: Interval | None

    def to_json(self) -> dict[str, object]:
        bounds = [self.interval.low, self.interval.high] if self.interval else None
        return {"estimate": self.estimate, "interval": bounds}


def log_ratios(base: Sequence[float], candidate: Sequence[float]) -> list[float]:
    """log(base / candidate) of times (all positive) that belong together."""
    return [math.log(b / c) for b, c in zip(base, candidate, strict=True)]


def ratio(logs: Sequence[float], alpha: float | None) -> Ratio:
    """The estimate and interval of exp(logs); without `alpha` there is no interval."""
    return Ratio(math.exp(hodges_lehmann(logs)), ratio_interval(logs, alpha) if alpha is not None else None)


def ratio_interval(logs: Sequence[float], alpha: float) -> Interval | None:
    bounds = signed_rank_interval(logs, alpha)
    return Interval(math.exp(bounds[0]), math.exp(bounds[1])) if bounds else None


def answer(interval: Interval | None, min_effect: float) -> Comparison:
    """What an interval says. `same` goes first: a difference that is surely too small to matter is not a gain.

    `faster` asks for a lower bound above 1, not above 1 + min_effect: the least effect of interest bounds what may be
    called the same; the interval stands beside every speedup for whoever wants a larger one.
    """
    if interval is None:
        return Comparison.UNRESOLVED
    if 1 / (1 + min_effect) <= interval.low and interval.high <= 1 + min_effect:
        return Comparison.SAME
    if interval.low > 1:
        return Comparison.FASTER
    return Comparison.SLOWER if interval.high < 1 else Comparison.UNRESOLVED


def mad(values: Sequence[float]) -> float:
    """The median absolute deviation from the median."""
    centre = statistics.median(values)
    return statistics.median(abs(value - centre) for value in values)


def relative_noise(times: Sequence[float]) -> float | None:
    """The spread of one program's times as a fraction (0.02 is 2 %), robust to outliers; None for fewer than two."""
    return MAD_TO_SIGMA * mad([math.log(time) for time in times]) if len(times) > 1 else None


def noise_floor(base_noise: float, candidate_noise: float, pairs: int, alpha: float = 0.05) -> float:
    """The relative difference that chance alone makes likely (1 - alpha) in the estimate from that many pairs."""
    z = statistics.NormalDist().inv_cdf(1 - alpha / 2)
    return z * math.hypot(base_noise, candidate_noise) / math.sqrt(pairs)


def resolution(times: Sequence[float]) -> float | None:
    """The smallest step between times that differ, in their unit; None where all are alike, so that it is unknown."""
    distinct = sorted(set(times))
    return min((b - a for a, b in itertools.pairwise(distinct)), default=None)
