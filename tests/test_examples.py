"""The repositories under examples/ are what they claim to be: their own build and run say PASS, and their candidates fit.

The programs run here as a newcomer would run them, without Kernelwright around them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernelwright.source import region_spans, splice
from kernelwright.task import ExitCodeCheck, FileCheck, PatternCheck, RegexTime, Run, Task
from kernelwright.task_file import load_task

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/kernelwright.toml"))
ON_CPU = [name for name in NAMES if load_task(EXAMPLES / name).language == "cpp"]
ON_GPU = [name for name in NAMES if name not in ON_CPU]
CANDIDATES = ("better", "worse", "wrong")


@dataclass(frozen=True)
class Built:
    """A scratch copy of an example, with a candidate in it or none, and its program built."""

    task: Task
    root: Path

    def run(self, run: Run) -> tuple[subprocess.CompletedProcess[str], dict[str, bytes]]:
        done = subprocess.run(
            shlex.split(run.command),
            cwd=self.root / self.task.workdir,
            env={**os.environ, **run.env},
            capture_output=True,
            text=True,
            timeout=run.timeout_s,
        )
        return done, {path: (self.root / path).read_bytes() for path in run.outputs}


def candidate(task: Task, name: str) -> tuple[dict[str, str], list[str]]:
    """Its text by region and its compile arguments."""
    data = json.loads((task.root / "candidates" / f"{name}.json").read_text())
    assert set(data) == {"final_code", "explanation", "compile_args"}
    code = data["final_code"]
    return ({task.region[0].name: code} if isinstance(code, str) else code), data["compile_args"]


def build(name: str, root: Path, code: dict[str, str] | None = None, args: list[str] | None = None) -> Built:
    task = load_task(EXAMPLES / name)
    shutil.copytree(task.root, root, ignore=shutil.ignore_patterns("*.o", *task.hidden, task.build.artifact))
    spans = region_spans(task)
    for region, text in (code or {}).items():
        path = root / spans[region].file
        path.write_bytes(splice(path.read_bytes(), {spans[region]: text}))
    values = {
        "{jobs}": "2",
        "{arch}": task.build.arch or "sm_90",
        "{flags}": " ".join([*task.build.flags, *(args or [])]),
    }
    command = [re.sub(r"\{\w+\}", lambda hole: values[hole[0]], word) for word in shlex.split(task.build.command)]
    done = subprocess.run(command, cwd=root / task.workdir, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (root / task.build.artifact).is_file()
    return Built(task, root)


def program_agrees(task: Task, done: subprocess.CompletedProcess[str]) -> bool:
    """Whether the checks that need no baseline pass, and a time was printed."""
    passed = [isinstance(task.time, RegexTime) and re.search(task.time.pattern, done.stdout, re.MULTILINE) is not None]
    for check in task.check:
        if isinstance(check, ExitCodeCheck):
            passed.append(done.returncode == check.code)
        elif isinstance(check, PatternCheck):
            passed.append(
                (re.search(check.pattern, done.stdout, re.MULTILINE) is not None) == (check.kind == "require")
            )
    return all(passed)


def test_there_are_examples_for_a_cpu_and_for_a_gpu() -> None:
    assert ON_CPU
    assert ON_GPU


@pytest.mark.parametrize("name", NAMES)
def test_the_task_file_loads_and_its_regions_are_found(name: str) -> None:
    task = load_task(EXAMPLES / name)
    assert task.name == name
    assert all(span.text for span in region_spans(task).values())


@pytest.mark.parametrize("name", NAMES)
def test_it_has_a_held_out_run_and_compares_a_file_that_every_run_writes(name: str) -> None:
    task = load_task(EXAMPLES / name)
    assert task.held_out
    compared = {check.path for check in task.check if isinstance(check, FileCheck)}
    assert compared
    assert all(compared <= set(run.outputs) for run in task.run)


@pytest.mark.parametrize("name", NAMES)
def test_its_candidates_change_its_regions_and_are_hidden_from_policies(name: str) -> None:
    task = load_task(EXAMPLES / name)
    assert "candidates" in task.hidden
    for which in CANDIDATES:
        code, args = candidate(task, which)
        spans = region_spans(task)
        assert code
        assert all(text.strip() != spans[region].text.strip() for region, text in code.items())
        assert all(arg.startswith("-") for arg in args)


@pytest.mark.parametrize("name", ON_CPU)
def test_the_original_passes_its_own_checks_at_every_size(name: str, tmp_path: Path) -> None:
    built = build(name, tmp_path / name)
    for run in built.task.run:
        done, files = built.run(run)
        assert program_agrees(built.task, done), done.stdout + done.stderr
        assert all(files.values())


@pytest.mark.parametrize("name", ON_CPU)
@pytest.mark.parametrize("which", ["better", "worse"])
def test_right_candidates_build_and_pass_at_every_size(name: str, which: str, tmp_path: Path) -> None:
    built = build(name, tmp_path / name, *candidate(load_task(EXAMPLES / name), which))
    for run in built.task.run:
        done, _ = built.run(run)
        assert program_agrees(built.task, done), done.stdout + done.stderr


@pytest.mark.parametrize("name", ON_CPU)
def test_the_wrong_candidate_builds_and_is_found_out(name: str, tmp_path: Path) -> None:
    """By the program itself, or where that looks at too little, by the file that it writes."""
    original = build(name, tmp_path / "original")
    wrong = build(name, tmp_path / "wrong", *candidate(original.task, "wrong"))
    run = original.task.shown[0]
    (_, expected), (done, files) = original.run(run), wrong.run(run)
    assert files != expected
    assert not program_agrees(wrong.task, done) or name == "smooth"


@pytest.mark.parametrize("name", ON_GPU)
@pytest.mark.parametrize("which", ["original", *CANDIDATES])
def test_the_cuda_program_and_its_candidates_build(name: str, which: str, tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is not installed")
    change = ({}, []) if which == "original" else candidate(load_task(EXAMPLES / name), which)
    build(name, tmp_path / name, *change)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ON_GPU)
@pytest.mark.parametrize("which", ["original", *CANDIDATES])
def test_the_cuda_program_judges_its_candidates_rightly(name: str, which: str, tmp_path: Path) -> None:
    change = ({}, []) if which == "original" else candidate(load_task(EXAMPLES / name), which)
    built = build(name, tmp_path / name, *change)
    for run in built.task.run:
        done, _ = built.run(run)
        assert program_agrees(built.task, done) == (which != "wrong"), done.stdout + done.stderr
