"""The statistics against scipy, by coverage, and at their edges."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from kernelwright import stats
from kernelwright.outcome import Comparison, Interval
from kernelwright.stats import Schedule


def test_counts_are_those_of_all_sign_patterns() -> None:
    for n in range(1, 11):
        sums = [sum(chosen) for k in range(n + 1) for chosen in itertools.combinations(range(1, n + 1), k)]
        assert stats.signed_rank_counts(n) == tuple(sums.count(value) for value in range(n * (n + 1) // 2 + 1))


def test_counts_of_64_pairs_are_complete() -> None:
    counts = stats.signed_rank_counts(64)
    assert sum(counts) == 2**64
    assert counts == counts[::-1]


@pytest.mark.parametrize("n", [8, 10, 16, 32, 64])
@pytest.mark.parametrize("alpha", [0.05, 2 / 256, 0.002, 0.003])
def test_interval_holds_exactly_the_shifts_that_scipy_does_not_reject(n: int, alpha: float) -> None:
    rng = random.Random(n)
    values = [rng.gauss(0.02, 0.03) for _ in range(n)]
    bounds = stats.signed_rank_interval(values, alpha)
    if bounds is None:
        assert 2 / 2**n > alpha
        return
    for bound, inward in ((bounds[0], 1e-9), (bounds[1], -1e-9)):
        inside, outside = (
            reference.wilcoxon([value - bound - step for value in values], method="exact").pvalue
            for step in (inward, -inward)
        )
        assert inside > alpha >= outside


@given(st.lists(st.floats(-1, 1, allow_nan=False), min_size=1, max_size=30))
def test_estimate_lies_within_every_interval_and_turns_with_the_sign(values: list[float]) -> None:
    estimate = stats.hodges_lehmann(values)
    assert estimate == pytest.approx(-stats.hodges_lehmann([-value for value in values]), abs=1e-12)
    bounds = stats.signed_rank_interval(values, 0.05)
    assert bounds is None or bounds[0] <= estimate <= bounds[1]


def test_seven_pairs_give_no_interval_at_the_level_that_eight_do() -> None:
    assert stats.signed_rank_interval([0.1] * 7, 2 / 256) is None
    assert stats.signed_rank_interval([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], 2 / 256) == (0.1, 0.8)


def test_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = random.Random(1)
    hits = 0
    for _ in range(2000):
        bounds = stats.signed_rank_interval([rng.gauss(0.05, 0.1) for _ in range(16)], 0.05)
        assert bounds is not None
        hits += bounds[0] <= 0.05 <= bounds[1]
    assert 0.94 < hits / 2000 < 0.965


def test_rounded_values_only_widen_the_interval() -> None:
    rng = random.Random(2)
    false = 0
    for _ in range(2000):
        values = [round(rng.gauss(0, 1.0)) * 0.01 for _ in range(16)]
        bounds = stats.signed_rank_interval(values, 0.05)
        assert bounds is not None
        false += not bounds[0] <= 0 <= bounds[1]
    assert false / 2000 < 0.05


def test_any_noise_under_a_fair_coin_calls_nothing_faster_too_often() -> None:
    rng = random.Random(3)
    faster, trials = 0, 3000
    for _ in range(trials):
        drifting = [run * 0.01 + rng.paretovariate(1.5) for run in range(20)]
        pairs = zip(drifting[::2], drifting[1::2], strict=True)
        values = [(a - b) * rng.choice((1, -1)) for a, b in pairs]
        faster += stats.answer(stats.ratio_interval(values, 0.05), 0.0) is Comparison.FASTER
    assert faster / trials < 0.025 + 3 * math.sqrt(0.025 / trials)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.02, 1.05, Comparison.FASTER),
        (1.001, 1.02, Comparison.FASTER),
        (0.9, 0.99, Comparison.SLOWER),
        (0.995, 1.005, Comparison.SAME),
        (1.002, 1.008, Comparison.SAME),
        (1 / 1.01, 1.01, Comparison.SAME),
        (0.98, 1.02, Comparison.UNRESOLVED),
        (1.0, 1.02, Comparison.UNRESOLVED),
    ],
)
def test_an_interval_has_one_answer(low: float, high: float, said: Comparison) -> None:
    assert stats.answer(Interval(low, high), 0.01) is said


def test_no_interval_answers_nothing() -> None:
    assert stats.answer(None, 0.01) is Comparison.UNRESOLVED


def test_ratios_are_base_over_candidate() -> None:
    found = stats.ratio(stats.log_ratios([2.0] * 10, [1.0] * 10), 0.01)
    assert found.estimate == pytest.approx(2.0)
    assert found.to_json() == {"estimate": pytest.approx(2.0), "interval": [pytest.approx(2.0)] * 2}


def test_noise_is_the_relative_spread_and_ignores_outliers() -> None:
    rng = random.Random(4)
    times = [3.0 * math.exp(rng.gauss(0, 0.02)) for _ in range(400)]
    assert stats.relative_noise(times) == pytest.approx(0.02, rel=0.15)
    assert stats.relative_noise([*times, 300.0, 400.0]) == pytest.approx(0.02, rel=0.15)
    assert stats.relative_noise([1.0]) is None


def test_noise_floor_is_what_chance_alone_makes_of_two_equal_programs() -> None:
    rng = random.Random(5)
    logs = [[rng.gauss(0, 0.02) - rng.gauss(0, 0.02) for _ in range(4)] for _ in range(3000)]
    within = sum(abs(statistics.fmean(values)) < stats.noise_floor(0.02, 0.02, 4) for values in logs)
    assert within / 3000 == pytest.approx(0.95, abs=0.015)


def test_resolution_is_the_smallest_step() -> None:
    assert stats.resolution([1.2, 1.0, 1.3, 1.0]) == pytest.approx(0.1)
    assert stats.resolution([1.0, 1.0]) is None


def test_a_schedule_that_could_never_decide_is_refused() -> None:
    with pytest.raises(ValueError, match="8 pairs cannot"):
        Schedule((8, 16), 0.003)
    with pytest.raises(ValueError, match="rising"):
        Schedule((16, 8), 0.05)
    with pytest.raises(ValueError, match="alpha"):
        Schedule((16,), 1.5)


def test_a_schedule_states_its_level_and_its_bound() -> None:
    schedule = Schedule((10, 16, 32, 64), 0.003)
    assert schedule.level == pytest.approx(0.988)
    assert schedule.false_faster == pytest.approx(0.006)
    assert Schedule((2,), None).level is None
