"""Both means of many tasks."""

from __future__ import annotations

import math

import pytest

from kernelwright.means import means


def test_a_failure_is_nothing_for_the_paper_and_the_original_for_a_user() -> None:
    found = means([4.0, None, 1.0], faster=1)
    assert found.paper.value == pytest.approx(5 / 3)
    assert found.gain.value == pytest.approx(4 ** (1 / 3))
    assert (found.tasks, found.faster, found.failed) == (3, 1, 1)
    assert found.to_json()["success"] == pytest.approx(1 / 3)


def test_a_slower_answer_is_a_loss_for_the_paper_alone() -> None:
    found = means([0.5, 1.0], faster=0)
    assert found.paper.value == 0.75
    assert found.gain.value == 1.0
    assert found.paper.interval is None


def test_intervals_hold_the_mean_and_narrow_with_more_tasks() -> None:
    few, many = means([1.0, 2.0, 4.0] * 2, 4), means([1.0, 2.0, 4.0] * 50, 100)
    widths = []
    for found in (few, many):
        assert found.gain.interval is not None
        assert found.gain.interval.low < found.gain.value < found.gain.interval.high
        widths.append(math.log(found.gain.interval.high / found.gain.interval.low))
    assert widths[1] < widths[0] / 3
    assert means([1.0, 2.0, 4.0], 2) == means([1.0, 2.0, 4.0], 2)


def test_equal_tasks_leave_no_doubt() -> None:
    found = means([2.0] * 5, 5)
    assert found.paper.interval is not None
    assert (found.paper.interval.low, found.paper.interval.high) == (2.0, 2.0)


def test_no_task_has_no_mean() -> None:
    with pytest.raises(ValueError, match="no task"):
        means([], 0)
