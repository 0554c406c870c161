"""Pairs recorded by comparison_gpu.py put through the schedules that decide, many times: errors and power, anywhere.

    python benchmarks/comparison_replay.py FILE.jsonl [--replays 10000] [--json FILE.json]

Windows of consecutive pairs of equal programs (aa) get new coins for their order, so that the truth is "no difference" and
the noise is the device's own; with 3 % added they tell the power. Windows of pairs whose candidate truly did less work
(effect) are taken as they were recorded.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kernelwright import stats
from kernelwright.measure import EVALUATE, PROVE
from kernelwright.outcome import Comparison
from kernelwright.stats import Schedule

TIMES = ("kernel", "application", "process")
SCHEDULES = {"prove": PROVE.schedule, "evaluate": EVALUATE.schedule}
MIN_EFFECT = 0.01
EARLY = {"prove": tuple(look for look in PROVE.schedule.looks if look <= 22), "10/14/20": (10, 14, 20)}
"""The looks by whose end a gain of 3 % should be found; for comparison, ones that end exactly there."""
SEEN = 20
"""So many pairs of a window tell its deviation."""
DEVIATIONS: tuple[tuple[float, float | None], ...] = (
    (0.0, 0.025), (0.0, 0.005), (0.005, 0.01), (0.01, 0.015), (0.015, 0.02), (0.02, 0.025), (0.025, None),
)  # fmt: skip
"""Classes of windows, by the standard deviation of their pairs' log ratios; None is no upper edge."""


def logs_of(pairs: Iterable[dict[str, Any]], which: str) -> list[float]:
    return [math.log(pair["base"][f"{which}_s"] / pair["candidate"][f"{which}_s"]) for pair in pairs]


def decided(logs: Sequence[float], schedule: Schedule) -> tuple[Comparison, int]:
    """What the schedule says of these pairs, and after how many."""
    assert schedule.alpha is not None
    for look in schedule.looks:
        said = stats.answer(stats.ratio_interval(logs[:look], schedule.alpha), MIN_EFFECT)
        if said is not Comparison.UNRESOLVED:
            return said, look
    return Comparison.UNRESOLVED, schedule.pairs


def window(logs: Sequence[float], size: int, rng: random.Random) -> list[float]:
    """Consecutive pairs from a random one on; after the last recorded pair comes the first."""
    start = rng.randrange(len(logs))
    return [logs[(start + step) % len(logs)] for step in range(size)]


def new_coins(logs: Iterable[float], rng: random.Random) -> list[float]:
    """The same pairs had the coins fallen otherwise: between equal programs, the other order is the other sign."""
    return [value if rng.random() < 0.5 else -value for value in logs]


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    z, share = 1.96, hits / trials
    centre, width = share + z * z / (2 * trials), z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2))
    low, high = ((centre + side * width) / (1 + z * z / trials) for side in (-1, 1))
    return max(0.0, low), min(1.0, high)


def errors(logs: Sequence[float], which: str, replays: int, seed: int) -> list[dict[str, Any]]:
    """How often equal programs are called faster or slower: by new coins, and in disjoint windows as recorded."""
    rows = []
    for name, schedule in SCHEDULES.items():
        rng = random.Random(f"{seed} {name} {which}")
        size = schedule.pairs
        found = [decided(new_coins(window(logs, size, rng), rng), schedule) for _ in range(replays)]
        rows.append({"coins": "new", **counted(which, name, found)})
        disjoint = [logs[start : start + size] for start in range(0, len(logs) - size + 1, size)]
        if disjoint:
            rows.append({"coins": "recorded", **counted(which, name, [decided(part, schedule) for part in disjoint])})
    return rows


def counted(which: str, budget: str, found: Sequence[tuple[Comparison, int]]) -> dict[str, Any]:
    answers = Counter(said.value for said, _ in found)
    shares = {said.value: answers[said.value] for said in Comparison}
    return {
        "time": which, "budget": budget, "windows": len(found), **shares,
        "faster_95": wilson(shares["faster"], len(found)), "slower_95": wilson(shares["slower"], len(found)),
        "pairs_mean": statistics.fmean(pairs for _, pairs in found),
    }  # fmt: skip


def power(windows: Sequence[Sequence[float]], which: str, source: str) -> list[dict[str, Any]]:
    """The share of windows called faster by each of the first looks, by the deviation of the windows' pairs."""
    deviations = [statistics.stdev(logs[:SEEN]) for logs in windows]
    rows = []
    for name, looks in EARLY.items():
        found = [decided(logs, Schedule(looks, PROVE.schedule.alpha)) for logs in windows]
        for low, high in DEVIATIONS:
            inside = [one for one, at in zip(found, deviations, strict=True) if low < at <= (high or math.inf)]
            by = {look: sum(said is Comparison.FASTER and at <= look for said, at in inside) for look in looks}
            row = {"source": source, "time": which, "looks": name, "deviation_above": low, "deviation_up_to": high}
            rows += [{**row, "windows": len(inside), "faster_by": by}] if inside else []
    return rows


def seen(kind: str, logs: Sequence[float], pairs: Sequence[dict[str, Any]], which: str) -> dict[str, Any]:
    """What the recorded pairs are like: their ratio, their spread, and whether a pair's second run differs."""
    order = [value if pair["candidate_first"] else -value for value, pair in zip(logs, pairs, strict=True)]
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    return {
        "kind": kind,
        "time": which,
        "pairs": len(logs),
        "median_s": statistics.median(pair["base"][f"{which}_s"] for pair in pairs),
        "ratio": math.exp(stats.hodges_lehmann(logs)),
        "mean_log": statistics.fmean(logs),
        "mean_log_error": error,
        "above_one": sum(value > 0 for value in logs),
        "deviation": statistics.stdev(logs),
        "deviation_robust": stats.MAD_TO_SIGMA * stats.mad(logs),
        "second_over_first": math.exp(statistics.median(order)),
    }


def replay(file: Path, replays: int, seed: int) -> dict[str, Any]:
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    pairs = {kind: [line for line in lines if line.get("kind") == kind] for kind in ("aa", "effect")}
    session, size = lines[0]["session"], max(map(max, EARLY.values()))
    whole: dict[str, Any] = {"schema": 1, "session": session, "replays": replays, "seed": seed}
    whole |= {"seen": [], "errors": [], "power": []}
    for which in TIMES:
        aa, effect = logs_of(pairs["aa"], which), logs_of(pairs["effect"], which)
        whole["seen"] += [
            seen(kind, logs, pairs[kind], which) for kind, logs in (("aa", aa), ("effect", effect)) if len(logs) > 1
        ]
        if len(aa) > 1:
            whole["errors"] += errors(aa, which, replays, seed)
            rng, shift = random.Random(f"{seed} power {which}"), math.log1p(session["effect"])
            moved = [[value + shift for value in new_coins(window(aa, size, rng), rng)] for _ in range(replays)]
            whole["power"] += power(moved, which, "aa, shifted")
        starts = range(len(effect) - size + 1)
        whole["power"] += power([effect[start : start + size] for start in starts], which, "effect")
    return whole


def tables(whole: dict[str, Any]) -> str:
    rows = [json.dumps(whole["session"]), "\nrecorded pairs", *map(seen_row, whole["seen"])]
    rows += ["\nequal programs: called faster, slower [95 %]", *map(error_row, whole["errors"])]
    rows += [f"\ntruly faster by {whole['session']['effect']:.0%}: called so after at most so many pairs"]
    return "\n".join([*rows, *map(power_row, whole["power"])])


def seen_row(row: dict[str, Any]) -> str:
    return (
        f"{row['kind']:7} {row['time']:12} {row['pairs']:5} pairs, {row['median_s'] * 1e3:9.3f} ms, ratio"
        f" {row['ratio']:.4f} (mean log {row['mean_log']:+.4f} ± {row['mean_log_error']:.4f}, {row['above_one']} above 1),"
        f" deviation {row['deviation']:.2%} (robust {row['deviation_robust']:.2%}),"
        f" second/first {row['second_over_first']:.4f}"
    )


def error_row(row: dict[str, Any]) -> str:
    shares = [
        f"{side} {row[side] / row['windows']:6.2%} [{row[f'{side}_95'][0]:.2%}, {row[f'{side}_95'][1]:.2%}]"
        for side in ("faster", "slower")
    ]
    return (
        f"{row['time']:12} {row['budget']:9} coins {row['coins']:9} {row['windows']:6} windows  {'  '.join(shares)}"
        f"  same {row['same'] / row['windows']:.1%}, {row['pairs_mean']:.1f} pairs"
    )


def power_row(row: dict[str, Any]) -> str:
    by = ", ".join(f"{look}: {count / row['windows']:6.1%}" for look, count in row["faster_by"].items())
    high = "" if row["deviation_up_to"] is None else f"{row['deviation_up_to']:.1%}"
    return (
        f"{row['source']:12} {row['time']:12} {row['looks']:9} deviation {row['deviation_above']:4.1%} to {high:4}"
        f" {row['windows']:6} windows  {by}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--replays", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the results")
    arguments = parser.parse_args()
    whole = replay(arguments.file, arguments.replays, arguments.seed)
    print(tables(whole))
    if arguments.json:
        arguments.json.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
