"""Equations 2 to 4 of the paper, by cases worked by hand."""

import pytest

from kernelwright.outcome import Comparison, Outcome, Verdict
from kernelwright.reward import performance_reward, reward, tools_reward
from kernelwright.trace import Message

SIX = ("benchmark_code", "microbench_code", "compiler_analysis", "file_viewer", "list_dir", "search")


def verdict(outcome: Outcome, comparison: Comparison | None = None, speedup: float | None = None) -> Verdict:
    return Verdict("t", outcome, "", comparison, speedup)


def called(name: str, ok: bool) -> Message:
    return Message("tool", "", name=name, ok=ok)


@pytest.mark.parametrize(("comparison", "speedup", "expected"), [
    (Comparison.FASTER, 1.5, 0.5),
    (Comparison.FASTER, 2.0, 1.0),
    (Comparison.FASTER, 11.0, 10.0),
    (Comparison.FASTER, 25.0, 10.0),
    (Comparison.SLOWER, 0.5, -1.0),
    (Comparison.SAME, 1.004, 0.0),
    (Comparison.UNRESOLVED, 1.3, 0.0),
])  # fmt: skip
def test_a_correct_candidate_earns_its_speedup_less_one_up_to_the_cap(comparison, speedup, expected):
    assert performance_reward(verdict(Outcome.CORRECT, comparison, speedup)) == pytest.approx(expected)


@pytest.mark.parametrize("outcome", sorted(set(Outcome) - {Outcome.CORRECT, Outcome.UNVERIFIED}))
def test_whatever_is_not_correct_costs_two(outcome):
    assert performance_reward(verdict(outcome)) == -2.0


def test_what_could_not_be_verified_or_run_has_no_score():
    unverified = reward(verdict(Outcome.UNVERIFIED), [called("search", True)], SIX)
    assert (unverified.performance, unverified.total) == (None, None)
    assert unverified.tools == pytest.approx(0.5 / 6)
    assert reward(None, [], SIX).total is None


def test_the_tool_part_counts_distinct_tools_over_those_available():
    assert tools_reward({"search", "list_dir"}, SIX) == pytest.approx(1 / 6)
    assert tools_reward(set(SIX), SIX) == 0.5
    assert tools_reward({"search", "unknown"}, ("search", "benchmark_code", "list_dir", "file_viewer")) == 0.125
    assert tools_reward(set(), ()) == 0.0


def test_only_calls_that_succeeded_count_and_each_tool_once():
    messages = [
        called("search", True),
        called("search", True),
        called("list_dir", False),
        called("benchmark_code", True),
    ]
    found = reward(verdict(Outcome.CORRECT, Comparison.FASTER, 1.5), messages, SIX[:4])
    assert (found.performance, found.tools, found.total) == (0.5, 0.125, 0.625)
