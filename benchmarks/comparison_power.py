"""How often the paired protocol is wrong, how much it sees, and what it costs, by simulation with known truth.

    python benchmarks/comparison_power.py [--repetitions 20000] [--seed 1] [--out FILE.json]

Drives the package's own interval and answer (`kernelwright.stats`), look by look, over simulated times of whole runs
in the order in which they would have run: two programs, one of them truly `effect` faster, in noise of several shapes.
`spread` is the noise of one run; a pair's is larger by the root of two. Real runs are comparison_error.py's work.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright import stats
from kernelwright.measure import EVALUATE, PROVE
from kernelwright.outcome import Comparison
from kernelwright.stats import Schedule

MIN_EFFECT = 0.01
Floats = np.ndarray
Noise = Callable[[np.random.Generator, int, float], Floats]
"""(generator, runs, spread) → log times of runs in the order they happen."""


def normal(rng: np.random.Generator, runs: int, spread: float) -> Floats:
    return rng.normal(0, spread, runs)


def heavy(rng: np.random.Generator, runs: int, spread: float) -> Floats:
    """Student's t with 2 degrees of freedom: no variance at all, as on a machine with neighbours."""
    return rng.standard_t(2, runs) * spread


def spikes(rng: np.random.Generator, runs: int, spread: float) -> Floats:
    """Normal noise; one run in ten is slowed by an exponential with mean ten spreads."""
    return rng.normal(0, spread, runs) + (rng.random(runs) < 0.1) * rng.exponential(10 * spread, runs)


def drift(rng: np.random.Generator, runs: int, spread: float) -> Floats:
    """Clocks sag by a tenth over the comparison."""
    return rng.normal(0, spread, runs) + np.linspace(0, 0.1, runs)


def walk(rng: np.random.Generator, runs: int, spread: float) -> Floats:
    """Autocorrelation 0.9 from run to run, with the given spread in the long term."""
    noise, steps = np.empty(runs), rng.normal(0, spread * np.sqrt(1 - 0.9**2), runs)
    noise[0] = rng.normal(0, spread)
    for run in range(1, runs):
        noise[run] = 0.9 * noise[run - 1] + steps[run]
    return noise


def neighbour(rng: np.random.Generator, runs: int, spread: float) -> Floats:
    """Another job slows seven runs of every fourteen by a tenth, from a random start."""
    return rng.normal(0, spread, runs) + 0.1 * (((np.arange(runs) + rng.integers(14)) // 7) % 2)


def second(rng: np.random.Generator, runs: int, spread: float) -> Floats:
    """The second run of every pair finds warm caches: 2 % quicker."""
    return rng.normal(0, spread, runs) - 0.02 * (np.arange(runs) % 2)


def rounded(rng: np.random.Generator, runs: int, spread: float) -> Floats:
    """Normal noise in times of about 1, printed with two decimals."""
    return np.log(np.round(np.exp(rng.normal(0, spread, runs)), 2))


SHAPES: tuple[Noise, ...] = (normal, heavy, spikes, drift, walk, neighbour, second, rounded)
SCHEDULES = {
    "prove": PROVE.schedule,
    "evaluate": EVALUATE.schedule,
    "8/16/32/64 at 0.0125": Schedule((8, 16, 32, 64), 0.0125),
    "10/20/40 at 0.0066": Schedule((10, 20, 40), 0.0066),
    "10/16/32/64 at 0.003": Schedule((10, 16, 32, 64), 0.003),
    "10/16/32/64 at 0.002": Schedule((10, 16, 32, 64), 0.002),
    "10/14/20/28/40/64 at 0.0033": Schedule((10, 14, 20, 28, 40, 64), 0.0033),
}


@dataclass(frozen=True)
class Case:
    schedule: str
    shape: Noise
    spread: float
    effect: float
    """t_base / t_candidate - 1, the truth."""
    coin: bool = True
    """Whether a coin orders each pair, as the protocol does; else the original always goes first."""


def simulate(case: Case, repetitions: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(
        [seed, *case.shape.__name__.encode(), round(case.spread * 1e4), round(case.effect * 1e4)]
    )
    schedule = SCHEDULES[case.schedule]
    answers: dict[Comparison, int] = dict.fromkeys(Comparison, 0)
    pairs, covered = [], 0
    for _ in range(repetitions):
        answer, used, holds = one(case, schedule, rng)
        answers[answer] += 1
        pairs.append(used)
        covered += holds
    return {
        "schedule": case.schedule, "shape": case.shape.__name__, "spread": case.spread, "effect": case.effect,
        "coin": case.coin, "repetitions": repetitions, "covered": covered / repetitions,
        "pairs_mean": float(np.mean(pairs)), "pairs_median": float(np.median(pairs)),
        **{answer.value: count / repetitions for answer, count in answers.items()},
    }  # fmt: skip


def one(case: Case, schedule: Schedule, rng: np.random.Generator) -> tuple[Comparison, int, bool]:
    """One comparison: its answer, the pairs it took, and whether its last interval holds the truth."""
    assert schedule.alpha is not None
    times = case.shape(rng, 2 * schedule.pairs, case.spread).reshape(-1, 2)
    base_first = rng.random(schedule.pairs) < 0.5 if case.coin else np.ones(schedule.pairs, dtype=bool)
    logs = np.where(base_first, times[:, 0] - times[:, 1], times[:, 1] - times[:, 0]) + np.log1p(case.effect)
    for look in schedule.looks:
        interval = stats.ratio_interval(logs[:look].tolist(), schedule.alpha)
        assert interval is not None
        answer = stats.answer(interval, MIN_EFFECT)
        if answer is not Comparison.UNRESOLVED:
            break
    return answer, look, bool(interval.low <= 1 + case.effect <= interval.high)


def cases(which: str) -> list[Case]:
    if which == "error":
        found = [Case(budget, shape, 0.02, 0.0) for budget in ("prove", "evaluate") for shape in SHAPES]
        found += [Case("prove", normal, spread, 0.0) for spread in (0.005, 0.01, 0.03, 0.05)]
        return [*found, Case("prove", second, 0.02, 0.0, coin=False)]
    if which == "power":
        noise = [(normal, spread) for spread in (0.005, 0.01, 0.02, 0.03, 0.05)] + [(heavy, 0.02), (spikes, 0.02)]
        return [
            Case(budget, shape, spread, effect)
            for budget in ("prove", "evaluate")
            for effect in (0.01, 0.03, 0.05, 0.1)
            for shape, spread in noise
        ]
    truths = [(0.02, 0.0), (0.01, 0.0), (0.01, 0.01), (0.02, 0.02), (0.02, 0.03), (0.02, 0.05)]
    return [Case(name, normal, spread, effect) for name in SCHEDULES for spread, effect in truths]


HEADING = (
    f"{'schedule':27} {'noise':9} {'':5} {'effect':>6} order {'faster':>9} {'slower':>9} {'same':>9}"
    f" {'unresolved':>10} {'covered':>9} {'pairs':>6}"
)


def row(result: dict[str, Any]) -> str:
    named = f"{result['schedule']:27} {result['shape']:9} {result['spread']:5.1%} {result['effect']:6.1%}"
    answers = f"{result['faster']:9.2%} {result['slower']:9.2%} {result['same']:9.2%} {result['unresolved']:10.2%}"
    order = "coin" if result["coin"] else "fixed"
    return f"{named} {order:5} {answers} {result['covered']:9.2%} {result['pairs_mean']:6.1f}"


def as_json(seed: int, found: dict[str, list[dict[str, Any]]]) -> str:
    """One result a line, so that a changed number is a changed line."""
    parts = [f'"{which}": [\n' + ",\n".join(map(json.dumps, results)) + "\n]" for which, results in found.items()]
    return "{\n" + ",\n".join([f'"schema": 1, "seed": {seed}, "min_effect": {MIN_EFFECT}', *parts]) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--which", nargs="+", choices=["error", "power", "schedules"], default=["error", "power", "schedules"]
    )
    parser.add_argument("--repetitions", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    arguments = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {}
    for which in arguments.which:
        print(f"\n{which}\n{HEADING}")
        for case in cases(which):
            repetitions = arguments.repetitions if case.effect == 0 else arguments.repetitions // 10
            found.setdefault(which, []).append(simulate(case, repetitions, arguments.seed))
            print(row(found[which][-1]), flush=True)
    if arguments.out:
        arguments.out.write_text(as_json(arguments.seed, found))


if __name__ == "__main__":
    main()
