"""The examples as a user would use them: accepted, their candidates judged rightly, optimised by the rules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelwright.task_file import load_task

EXAMPLES = sorted(path.parent for path in (Path(__file__).parent.parent / "examples").glob("*/kernelwright.toml"))
MARKS = {"cpp": pytest.mark.long, "cuda": pytest.mark.gpu}
TASKS = [pytest.param(folder, id=folder.name, marks=MARKS[load_task(folder).language]) for folder in EXAMPLES]


def kernelwright(*words: str | Path) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "kernelwright", *map(str, words), "--json"], capture_output=True, text=True
    )
    assert done.stdout, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, data


@pytest.mark.parametrize("folder", TASKS)
def test_an_example_is_accepted(folder: Path) -> None:
    code, found = kernelwright("check", folder)
    assert (code, found["reasons"]) == (0, [])


@pytest.mark.parametrize("folder", TASKS)
@pytest.mark.parametrize(
    ("candidate", "outcome", "comparison", "code"),
    [("better", "correct", "faster", 0), ("worse", "correct", "slower", 1), ("wrong", "wrong_result", None, 1)],
)
def test_a_candidate_of_an_example_is_judged_rightly(
    folder: Path, candidate: str, outcome: str, comparison: str | None, code: int
) -> None:
    got, verdict = kernelwright("verify", folder, folder / "candidates" / f"{candidate}.json", "--time-limit", "120")
    assert (verdict["outcome"], verdict["comparison"]) == (outcome, comparison), verdict["reason"]
    assert got == code


@pytest.mark.parametrize("folder", TASKS)
def test_the_rules_search_and_their_answer_is_proven(folder: Path, tmp_path: Path) -> None:
    code, result = kernelwright("optimize", folder, "--policy", "rules", "--out", tmp_path)
    assert code == 0
    assert result["outcome"] == "correct", result["reason"]
    if folder.name == "heat":  # the demo: its gain is many times the noise of any machine
        assert result["comparison"] == "faster", result["reason"]
        assert result["candidate"]["explanation"]
        assert result["gain"]["code"] > 1
    assert (tmp_path / "result.json").is_file()
    _, shown = kernelwright("show", result["run"])
    assert sum(message["name"] == "benchmark_code" for message in shown["attempts"]["0"]) <= 8
