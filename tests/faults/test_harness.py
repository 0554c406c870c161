"""The fault harness itself, over a few points: every kind of fault comes to nothing but an error and a second try."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).parents[2] / "benchmarks"


def disturbed(out: Path, *words: object) -> list[dict[str, object]]:
    """The trials' records, after a run of the harness in which nothing was found."""
    command = [sys.executable, str(HARNESS / "faults.py"), "--out", str(out), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_commands_that_are_killed_go_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    kinds = ("kill product", "kill launcher", "kill compiler", "kill program", "interrupt")
    only = [word for kind in kinds for word in ("--only", kind)]
    records = disturbed(tmp_path / "trials.jsonl", "--points", 1, "--command", "bench", *only)
    assert sorted(str(record["kind"]) for record in records) == sorted(kinds)
    assert {record["again"] for record in records} == {0}


@pytest.mark.long
def test_a_few_points_of_every_kind(tmp_path: Path) -> None:
    records = disturbed(
        tmp_path / "trials.jsonl", "--points", 5, "--command", "model, short", "--command", "verify wrong"
    )
    assert len(records) >= 10
    assert not any(record["problems"] for record in records)
