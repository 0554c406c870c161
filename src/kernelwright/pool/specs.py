"""Job specs as files: written for tasks, so that a person can hand work to a cluster, and read from what a person names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwright.candidates import read_candidate
from kernelwright.errors import UsageError
from kernelwright.pool import JobSpec
from kernelwright.pool.archive import put
from kernelwright.pool.folder import PoolFolder
from kernelwright.task import Task
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate

WRITER = "kernelwright pool specs TASK --kind accept --folder DIR"


def accept_spec(task: Task, folder: PoolFolder, seed: int, deadline_s: float) -> JobSpec:
    """The job that tests a task, whose archive is put into the folder."""
    return JobSpec("accept", {"seed": seed}, put(task, folder), deadline_s)


def verdict_spec(
    task: Task, candidate: Candidate, folder: PoolFolder, budget: str, seed: int, deadline_s: float
) -> JobSpec:
    """The job that judges a candidate."""
    payload = {"candidate": candidate.to_json(), "budget": budget, "time_budget_s": None, "seed": seed}
    return JobSpec("verdict", payload, put(task, folder), deadline_s)


def write_specs(
    tasks: Sequence[Path], candidates: Sequence[Path], folder: PoolFolder, budget: str, seed: int, deadline_s: float
) -> list[JobSpec]:
    """A verdict on each candidate of each task; without candidates an acceptance of each task. Written into the folder once
    all of them are known to be right."""
    made = []
    for task in map(load_task, tasks):
        if not candidates:
            made.append(accept_spec(task, folder, seed, deadline_s))
        for file in candidates:
            made.append(verdict_spec(task, read_candidate(task, file), folder, budget, seed, deadline_s))
    for spec in made:
        folder.put("specs", spec.id, spec.to_json())
    return made


def read_specs(paths: Sequence[Path]) -> list[JobSpec]:
    """The specs of files (one object, or one on each line) and of pools' folders, each once. Raises UsageError."""
    found: dict[str, JobSpec] = {}
    for path in paths:
        files = sorted(_specs_of(path).glob("*.json")) if path.is_dir() else [path]
        for spec in (spec for file in files for spec in _read(file)):
            found.setdefault(spec.id, spec)
    if not found:
        raise UsageError(f"there is no spec in {', '.join(map(str, paths))}", "at least one job", WRITER)
    return list(found.values())


def folder_of(paths: Sequence[Path]) -> Path:
    """Where the results of such specs belong: the pool's folder that the first lies in or is, else one beside it."""
    first = paths[0]
    specs = _specs_of(first) if first.is_dir() else first.parent
    if specs.name == "specs":
        return specs.parent
    return first if first.is_dir() else first.with_name(f"{first.stem}.pool")


def require_archives(specs: Sequence[JobSpec], folder: PoolFolder) -> None:
    """Raises UsageError where a job's task is not in the folder: no worker could find it."""
    for spec in specs:
        if spec.archive is not None and not (folder.path / "archives" / f"{spec.archive}.tar.gz").exists():
            raise UsageError(
                f"the task of job {spec.id[:8]} is not in {folder.path}",
                "the folder that its spec was written for",
                f"--folder DIR, or write it there: {WRITER}",
            )


def _specs_of(folder: Path) -> Path:
    return folder / "specs" if (folder / "specs").is_dir() else folder


def _read(file: Path) -> list[JobSpec]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{file} cannot be read: {said}", "a file of job specs", WRITER) from None
    try:
        return [JobSpec.from_json(data) for data in _objects(text)]
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is not JSON: {error}", "one object, or one on each line", WRITER) from None
    except UsageError as error:
        raise UsageError(f"{file}: {error.what}", error.expected or "a spec as it was written", WRITER) from None


def _objects(text: str) -> list[Any]:
    """One object over as many lines as it likes, or each line an object."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
