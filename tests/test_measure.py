"""The protocol with scripted programs: what is run, in which order, when it stops, and what it answers."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kernelwright.measure import (
    ADVISE,
    EVALUATE,
    PROVE,
    TOO_FEW_DIGITS,
    Budget,
    Measurement,
    Pair,
    Sample,
    StopReason,
    compare,
    estimate_s,
)
from kernelwright.outcome import Comparison


@dataclass
class Machine:
    """A pretend machine: two programs, a clock that only their runs move, and a log of what ran."""

    base_s: float = 1.0
    candidate_s: float = 1.0
    noise: float = 0.0
    kernel_s: float | None = None
    read: Callable[[float], float] = lambda time_s: time_s
    now_s: float = 0.0
    ran: list[str] = field(default_factory=list)
    rng: random.Random = field(default_factory=lambda: random.Random(1))

    async def base(self) -> Sample:
        return self.run("base", self.base_s)

    async def candidate(self) -> Sample:
        return self.run("candidate", self.candidate_s)

    def run(self, program: str, time_s: float) -> Sample:
        taken_s = time_s * (1 + self.noise * self.rng.gauss(0, 1))
        self.now_s += taken_s
        self.ran.append(program)
        extra = {} if self.kernel_s is None else {"kernel_s": self.kernel_s * time_s}
        return Sample(self.read(taken_s), wall_s=taken_s, cpu_s=2 * taken_s, extra=extra)

    def compare(
        self,
        budget: Budget = PROVE,
        *,
        seed: int = 0,
        time_budget_s: float | None = None,
        on_pair: Callable[[Pair, int], None] | None = None,
    ) -> Measurement:
        return asyncio.run(
            compare(
                self.base,
                self.candidate,
                budget,
                min_effect=0.01,
                rng=random.Random(seed),
                time_budget_s=time_budget_s,
                on_pair=on_pair,
                clock=lambda: self.now_s,
            )
        )


def test_every_pair_runs_both_in_an_order_of_its_own() -> None:
    machine = Machine(noise=0.05)
    found = machine.compare()
    pairs = [*found.warm_ups, *found.pairs]
    orders = [tuple(machine.ran[i : i + 2]) for i in range(0, len(machine.ran), 2)]
    assert orders == [("candidate", "base") if pair.candidate_first else ("base", "candidate") for pair in pairs]
    assert 16 < sum(pair.candidate_first for pair in found.pairs) < 48


def test_the_seed_decides_the_order() -> None:
    orders = [[pair.candidate_first for pair in Machine(noise=0.05).compare(seed=seed).pairs] for seed in (7, 7, 8)]
    assert orders[0] == orders[1] != orders[2]


def test_a_warm_up_of_each_is_run_and_kept_but_never_counted() -> None:
    machine = Machine(base_s=2.0)
    found = machine.compare(EVALUATE)
    assert sorted(machine.ran[:2]) == ["base", "candidate"]
    assert (len(found.warm_ups), len(found.pairs), len(machine.ran)) == (1, 8, 18)


def test_a_clear_gain_stops_at_the_first_look() -> None:
    found = Machine(base_s=1.2, noise=0.01).compare()
    assert (found.comparison, found.stop, len(found.pairs)) == (Comparison.FASTER, StopReason.DECIDED, 10)
    assert found.interval is not None
    assert 1.1 < found.interval.low < found.speedup < found.interval.high < 1.3
    assert found.level == pytest.approx(0.99)
    assert found.sentence.startswith("faster: 1.2")
    assert found.sentence.endswith("at 99.0% after 10 pairs")


def test_a_smaller_gain_takes_more_looks() -> None:
    found = Machine(base_s=1.03, noise=0.03).compare()
    assert found.comparison is Comparison.FASTER
    assert [look.pairs for look in found.looks] == [10, 14, 20, 36, 64][: len(found.looks)]
    assert len(found.looks) > 1
    assert all(look.answer is Comparison.UNRESOLVED for look in found.looks[:-1])


def test_a_loss_is_called_slower() -> None:
    assert Machine(candidate_s=1.2, noise=0.01).compare().comparison is Comparison.SLOWER


def test_two_equal_programs_on_a_quiet_machine_are_called_the_same() -> None:
    found = Machine(noise=0.003).compare()
    assert (found.comparison, found.stop) == (Comparison.SAME, StopReason.DECIDED)


def test_a_gain_below_the_least_effect_of_interest_is_the_same() -> None:
    found = Machine(base_s=1.004, noise=0.001).compare()
    assert found.comparison is Comparison.SAME
    assert found.interval is not None
    assert found.interval.low > 1


def test_what_64_pairs_cannot_tell_stays_unresolved() -> None:
    found = Machine(noise=0.1).compare()
    assert (found.comparison, found.stop, len(found.pairs)) == (Comparison.UNRESOLVED, StopReason.ALL_PAIRS, 64)


def test_advise_reports_and_never_answers() -> None:
    found = Machine(base_s=2.0, noise=0.01).compare(ADVISE)
    assert (found.comparison, found.interval, found.level, found.looks) == (None, None, None, ())
    assert found.speedup == pytest.approx(2.0, rel=0.1)
    assert found.noise_floor is not None
    assert found.sentence.endswith("× after 2 pairs")


def test_evaluate_runs_eight_pairs_and_asks_all_to_agree() -> None:
    assert Machine(base_s=1.2, noise=0.01).compare(EVALUATE).comparison is Comparison.FASTER
    doubtful = Machine(base_s=1.02, noise=0.05).compare(EVALUATE)
    assert (doubtful.comparison, len(doubtful.pairs)) == (Comparison.UNRESOLVED, 8)


def test_no_answer_comes_from_fewer_pairs_than_the_first_look_has() -> None:
    found = Machine(base_s=2.0, noise=0.01).compare(time_budget_s=25.0)
    assert (found.comparison, found.stop) == (Comparison.UNRESOLVED, StopReason.TIME_BUDGET)
    assert (len(found.pairs), found.interval) == (7, None)
    assert found.sentence.endswith("after 7 pairs, when the time budget ended")


def test_the_end_of_the_time_budget_is_the_last_look() -> None:
    machine = Machine(noise=0.1)
    found = machine.compare(time_budget_s=60.0)
    assert found.stop is StopReason.TIME_BUDGET
    assert [look.pairs for look in found.looks] == [10, 14, 20, len(found.pairs)]
    assert machine.now_s < 60.0


def test_the_last_look_of_the_time_budget_may_decide() -> None:
    found = Machine(base_s=1.04, noise=0.03, rng=random.Random(4)).compare(time_budget_s=41.5)
    assert (found.comparison, found.stop) == (Comparison.FASTER, StopReason.DECIDED)
    assert [look.pairs for look in found.looks] == [10, 14, 19]


def test_one_pair_always_runs_whatever_the_time_budget() -> None:
    found = Machine(base_s=300.0, candidate_s=100.0).compare(time_budget_s=60.0)
    assert (len(found.pairs), found.comparison) == (1, Comparison.UNRESOLVED)
    assert found.speedup == pytest.approx(3.0)
    assert found.noise_floor is None


def test_the_estimate_says_the_best_and_the_worst_case() -> None:
    estimate = estimate_s(PROVE, run_s=0.5)
    assert (estimate.best_s, estimate.worst_s) == (11.0, 65.0)


def test_times_with_too_few_digits_are_never_called_the_same() -> None:
    found = Machine(base_s=1.2, noise=0.001, read=lambda time_s: float(round(time_s))).compare()
    assert found.comparison is Comparison.UNRESOLVED
    assert TOO_FEW_DIGITS in found.warnings


def test_times_with_few_digits_may_still_be_called_faster() -> None:
    found = Machine(base_s=2.0, noise=0.001, read=lambda time_s: float(round(time_s))).compare()
    assert found.comparison is Comparison.FASTER


def test_wall_cpu_and_kernel_times_are_compared_beside_but_do_not_decide() -> None:
    found = Machine(base_s=1.2, noise=0.01, kernel_s=0.5, read=lambda time_s: 1 + 0.001 * (time_s % 0.1)).compare()
    assert found.comparison is Comparison.SAME
    assert found.wall is not None
    assert found.cpu is not None
    assert found.kernel is not None
    assert found.wall.estimate == pytest.approx(1.2, rel=0.02)
    assert found.cpu.estimate == pytest.approx(found.wall.estimate)
    assert found.kernel.estimate == pytest.approx(1.2)


def test_kernels_that_are_timed_in_the_warm_ups_alone_leave_the_counted_runs_undisturbed() -> None:
    plain, recorded = Machine(base_s=1.2), Machine(base_s=3.0, candidate_s=2.0, kernel_s=0.5)
    found = asyncio.run(
        compare(
            plain.base,
            plain.candidate,
            EVALUATE,
            min_effect=0.01,
            rng=random.Random(0),
            warm_up=(recorded.base, recorded.candidate),
        )
    )
    assert found.speedup == pytest.approx(1.2)
    assert found.kernel is not None
    assert found.kernel.estimate == pytest.approx(1.5)
    assert sorted(recorded.ran) == ["base", "candidate"]
    assert [pair.base.extra for pair in found.pairs] == [{}] * 8


def test_without_kernel_times_there_is_no_kernel_ratio() -> None:
    assert Machine(base_s=1.2).compare().kernel is None


def test_progress_is_told_after_every_pair() -> None:
    told: list[tuple[float, int]] = []
    Machine(base_s=2.0).compare(EVALUATE, on_pair=lambda pair, count: told.append((pair.base.time_s, count)))
    assert told == [(2.0, count) for count in range(1, 9)]


def test_a_run_that_fails_ends_the_comparison_with_its_own_error() -> None:
    async def fails() -> Sample:
        raise TimeoutError("the candidate's own limit")

    with pytest.raises(TimeoutError, match="own limit"):
        asyncio.run(compare(Machine().base, fails, EVALUATE, min_effect=0.01, rng=random.Random(1)))


@pytest.mark.parametrize("time_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_sample_without_a_positive_time_is_refused(time_s: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        Sample(time_s, 1.0, 1.0)


def test_everything_it_was_made_from_goes_into_json() -> None:
    found = Machine(base_s=1.2, noise=0.01).compare()
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert record["comparison"] == "faster"
    assert record["stop"] == "decided"
    assert len(record["pairs"]) == 10
    assert set(record["pairs"][0]) == {"base", "candidate", "candidate_first"}
    assert record["pairs"][0]["base"]["time_s"] == found.pairs[0].base.time_s
    assert record["conditions"]["before"]["own_s"] >= 0
