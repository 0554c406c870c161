"""Tolerances from observed deviations: the arithmetic alone."""

from __future__ import annotations

import math
import random

import pytest

from kernelwright.tolerance import (
    LOWER,
    MEASURABLE,
    ROUNDOFF,
    Numbers,
    beyond,
    exact,
    factor_of,
    is_count,
    last_digit,
    variation_of,
)

FLOOR = math.sqrt(ROUNDOFF["double"] * LOWER["double"])


@pytest.mark.parametrize(
    ("token", "unit", "count"),
    [
        ("12", 1.0, True), ("-3", 1.0, True), ("1,024", 1.0, True), ("-1.25", 0.01, False), (".5", 0.1, False),
        ("7.", 1.0, False), ("1.50e-7", 1e-9, False), ("1.2E2", 10.0, False), ("3e4", 1e4, False), ("nan", 0.0, True),
    ],
)  # fmt: skip
def test_the_last_digit_of_a_printed_number_is_its_resolution(token: str, unit: float, count: bool) -> None:
    assert last_digit(token) == pytest.approx(unit)
    assert is_count(token) is count


def test_numbers_that_were_put_together_have_the_resolution_of_their_parts() -> None:
    parts = ["1.5", "2.25"]
    assert list(Numbers([3.75], parts, "sum").last_digits()) == [pytest.approx(0.11)]
    assert list(Numbers([2.25], parts, "max").last_digits()) == [pytest.approx(0.1)]
    assert list(Numbers([3.0], ["1", "2"], "sum").counts()) == [True]
    assert list(Numbers([3.5], ["1", "2.5"], "sum").counts()) == [False]


def test_what_never_varies_has_the_floor_of_its_precision() -> None:
    found = variation_of(Numbers([2.0, -8.0]), [[2.0, -8.0]], "double")
    assert (list(found.own), found.versions) == ([0.0, 0.0], 0)
    assert list(found.allowed) == pytest.approx([FLOOR * 5.0, FLOOR * 8.0]), "the median magnitude for a smaller one"
    assert variation_of(Numbers([1.0]), [], "single").relative == pytest.approx(5.4e-6, rel=0.01)


def test_each_component_has_the_deviation_that_it_was_seen_with_or_the_typical_one() -> None:
    wanted = [1.0, 1.0, 1.0, 1000.0]
    versions = [[1.0, 1 + 1e-9, 1 + 1e-9, 1000.0], [1.0, 1 + 3e-9, 1 - 1e-9, 1000.0], [1.0, 1.0, 1 + 5e-7, 1000.0]]
    found = variation_of(Numbers(wanted), versions, "double")
    assert found.versions == 3
    # relative deviations 0, 3e-9, 5e-7, 0: the median holds where a component was not seen to move
    assert [own / abs(value) for own, value in zip(found.own, wanted, strict=True)] == pytest.approx(
        [1.5e-9, 3e-9, 5e-7, 1.5e-9], rel=1e-3
    )
    assert found.allowed[2] == pytest.approx(12.9 * 5e-7, rel=1e-3)


def test_relative_to_the_largest_a_small_component_may_differ_as_the_others_do() -> None:
    wanted = Numbers([1000.0, 1e-9, -500.0])
    versions = [[1000.0 + k * 1e-10, 1e-9, -500.0 + k * 2e-10] for k in (1, 2, 3, 4)]
    by_value = variation_of(wanted, versions, "double")
    by_largest = variation_of(wanted, versions, "double", "largest")
    assert by_value.allowed[1] < 1e-17 < 1e-9 < by_largest.allowed[1]


def test_counts_differ_only_where_the_original_s_differ() -> None:
    wanted = Numbers([120.0, 3.0, 0.5], ["120", "3", "0.50"])
    found = variation_of(wanted, [[121.0, 3.0, 0.5], [119.0, 3.0, 0.5]], "double")
    assert list(found.allowed)[:2] == [pytest.approx(factor_of(2)), 0.0]
    assert list(variation_of(wanted, [[120.0, 3.0, 0.5]], "double").allowed)[:2] == [0.0, 0.0]


def test_a_flip_of_the_last_printed_digit_is_allowed_for_and_not_multiplied() -> None:
    wanted = Numbers([0.123], ["0.123"])
    assert variation_of(wanted, [[0.124]], "double").allowed[0] == pytest.approx(2e-3, rel=1e-6)
    assert variation_of(wanted, [[0.123]], "double").allowed[0] == pytest.approx(1e-3, rel=1e-6)
    assert variation_of(wanted, [[0.130]], "double").allowed[0] == pytest.approx(0.7 + 2e-3, rel=1e-3)


def test_the_fewer_versions_differ_the_less_they_say() -> None:
    assert [factor_of(count) for count in (0, 1, 2, 3, 4, 20)] == [10, 100, 31.6, 12.9, 10, 10]
    same_twice = variation_of(Numbers([1.0]), [[1.1], [1.1], [1.0]], "double")
    assert same_twice.versions == 1


def test_versions_that_are_something_else_say_nothing() -> None:
    nan, inf = math.nan, math.inf
    wanted = Numbers([1.0, nan, inf])
    found = variation_of(
        wanted, [[1.0, nan], [nan, nan, inf], [inf, nan, inf], [1.5, 0.0, inf], [1.2, nan, inf]], "double"
    )
    assert (found.versions, found.own[0]) == (1, pytest.approx(0.2))
    assert list(found.allowed)[1:] == [pytest.approx(0, abs=1e-9)] * 2


def test_noise_is_no_tolerance() -> None:
    assert not variation_of(Numbers([1.0]), [[1.01]], "double").tells
    assert variation_of(Numbers([1.0]), [[1.0 + 1e-9]], "double").tells
    assert exact(3).relative < MEASURABLE


def test_one_more_draw_of_the_same_noise_is_allowed() -> None:
    """Also where one version alone differed, and each component's noise has a size of its own."""
    rng = random.Random(4)
    sizes = [10 ** rng.uniform(-14, -9) for _ in range(300)]
    wanted = [rng.uniform(0.5, 2.0) for _ in sizes]

    def version() -> list[float]:
        return [value + rng.gauss(0, size) for value, size in zip(wanted, sizes, strict=True)]

    for count, most in ((1, 0.01), (3, 0.001), (6, 0.0)):
        refused = 0
        for _ in range(20):
            found = variation_of(Numbers(wanted), [version() for _ in range(count)], "double")
            apart = zip(version(), wanted, found.allowed, strict=True)
            refused += sum(abs(value - goal) > allowed for value, goal, allowed in apart)
        assert refused / 20 / len(sizes) <= most


def test_a_lower_precision_is_told_apart_by_all_of_its_numbers() -> None:
    wanted = [1.0, 2.0, 3.0, 4.0]
    own = variation_of(Numbers(wanted), [[1 + 1e-15, 2.0, 3.0, 4 + 1e-15]], "double")
    said = beyond([value * (1 + 3e-8) for value in wanted], wanted, own, "double")
    assert said is not None
    assert "by rel 3e-08," in said
    assert beyond([1 + 3e-8, 2.0, 3.0, 4.0], wanted, own, "double") is None
    assert beyond(wanted, wanted, own, "double") is None
    assert beyond(wanted[:3], wanted, own, "double") is None
