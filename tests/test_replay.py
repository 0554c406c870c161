"""Recorded pairs of runs are replayed through the schedules that decide, and a real recording can be."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SESSION = {"device": "made up", "effect": 0.03, "rounds": {"aa": [1030, 1030], "effect": [1030, 1000]}}


def run(script: str, *words: object) -> str:
    done = subprocess.run(
        [sys.executable, BENCHMARKS / script, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def replayed(file: Path, replays: int) -> dict[str, Any]:
    out = file.with_suffix(".json")
    run("comparison_replay.py", file, "--replays", replays, "--json", out)
    whole: dict[str, Any] = json.loads(out.read_text())
    return whole


def made_up(file: Path, deviation: float, pairs: int) -> Path:
    """Pairs whose log ratios have this standard deviation, as comparison_gpu.py writes them."""
    rng = random.Random(1)

    def times(factor: float) -> dict[str, float]:
        return {f"{which}_s": factor * (1 + rng.gauss(0, deviation / 2**0.5)) for which in names}

    names = ("kernel", "application", "process")
    lines: list[dict[str, Any]] = [{"session": SESSION}]
    for kind, factor in (("aa", 1.0), ("effect", 1.03)):
        for index in range(pairs):
            coin = rng.random() < 0.5
            lines.append({"kind": kind, "index": index, "candidate_first": coin, "base": times(factor),
                          "candidate": times(1.0)})  # fmt: skip
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


def test_equal_programs_are_called_faster_in_under_a_hundredth_of_the_replays(tmp_path: Path) -> None:
    whole = replayed(made_up(tmp_path / "pairs.jsonl", 0.02, 120), 1000)
    rows = [row for row in whole["errors"] if row["coins"] == "new"]
    assert len(rows) == 6
    assert all(row["faster_95"][0] < 0.005 and row["slower_95"][0] < 0.005 for row in rows)
    assert all(row["windows"] == 1000 for row in rows)


def test_a_gain_of_three_percent_is_found_early_where_pairs_deviate_by_one(tmp_path: Path) -> None:
    whole = replayed(made_up(tmp_path / "pairs.jsonl", 0.01, 120), 200)
    rows = [row for row in whole["power"] if row["deviation_up_to"] == 0.025 and row["looks"] == "prove"]
    assert {row["source"] for row in rows} == {"aa, shifted", "effect"}
    assert all(row["faster_by"]["14"] > 0.95 * row["windows"] for row in rows if row["deviation_above"] == 0)


def test_real_pairs_are_recorded_by_the_protocol_and_a_second_call_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    words = ("--device", "cpu", "--run-ms", 2, "--minutes", 1)
    run("comparison_gpu.py", file, *words, "--pairs-aa", 4, "--pairs-effect", 2)
    run("comparison_gpu.py", file, *words, "--pairs-aa", 6, "--pairs-effect", 3)
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    assert [line["index"] for line in lines if line.get("kind") == "aa"] == list(range(6))
    assert [line["index"] for line in lines if line.get("kind") == "effect"] == list(range(3))
    original, candidate = lines[0]["session"]["rounds"]["effect"]
    assert candidate < original
    seen = replayed(file, 20)["seen"]
    assert [(row["kind"], row["pairs"]) for row in seen if row["time"] == "process"] == [("aa", 6), ("effect", 3)]
