"""Times that were seen, kept in one size however many they are: for counts that go on for days."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import asdict, dataclass, field
from typing import Any

BOUNDS_S = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""Upper ends of the histograms' buckets, in seconds: from a health job to a proof; the last bucket has none."""


@dataclass
class Spread:
    """Seconds that were seen, as their count, sum, greatest and histogram; of one size, however many they are."""

    count: int = 0
    sum_s: float = 0.0
    max_s: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))

    def add(self, seconds: float) -> None:
        self.count += 1
        self.sum_s += seconds
        self.max_s = max(self.max_s, seconds)
        self.buckets[bisect_left(BOUNDS_S, seconds)] += 1

    def quantile(self, share: float) -> float | None:
        """The time that this share of all does not pass, taken as even within its bucket; None where none was seen."""
        left = share * self.count
        for number, inside in enumerate(self.buckets):
            if inside and left <= inside:
                low = BOUNDS_S[number - 1] if number else 0.0
                high = min(BOUNDS_S[number] if number < len(BOUNDS_S) else self.max_s, self.max_s)
                return min(low + max(high - low, 0.0) * left / inside, high)
            left -= inside
        return None

    def to_json(self) -> dict[str, Any]:
        mean = self.sum_s / self.count if self.count else None
        middle = {"mean_s": mean, "median_s": self.quantile(0.5), "p95_s": self.quantile(0.95)}
        return {**asdict(self), **middle}
