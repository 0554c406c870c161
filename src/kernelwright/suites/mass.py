"""The acceptance test of a whole folder of tasks: which files are tasks, the job for each, and the answer by reasons.

The jobs run on a pool as any others do, and their results stay in a folder of their own, so that what was interrupted goes
on with the tasks that have no answer yet. Who runs them, and what a person sees meanwhile, is the command line's.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kernelwright import __version__
from kernelwright.errors import TaskError, UsageError
from kernelwright.pool import DEADLINE_S, Finished, JobSpec
from kernelwright.pool.archive import put
from kernelwright.pool.folder import PoolFolder
from kernelwright.state import state_home
from kernelwright.suites import read_listing
from kernelwright.task import TASK_FILE, Task
from kernelwright.task_file import load_task
from kernelwright.toolchain.devices import default_arch

State = Literal["accepted", "builds", "refused", "unfit", "unread", "lacking", "open"]
STATES: Mapping[State, str] = {
    "accepted": "every probe said what it must",
    "builds": "all that needs no device is right; nothing was run",
    "refused": "a probe that must be rejected was not",
    "unfit": "the unmodified program does not build, run, or pass its own checks",
    "unread": "the file is no task",
    "lacking": "its runs need files that the checkout does not have; nothing was tried",
    "open": "no answer yet: interrupted, or the machines failed",
}


@dataclass(frozen=True)
class How:
    """What is asked of each task."""

    builds_only: bool = False
    """Whether only that is asked which needs no device."""
    time_budget_s: float | None = None
    """For the comparison of each unmodified program with itself; None is the task's own."""
    seed: int = 0
    """Of each acceptance's order, and of the sample."""
    deadline_s: float = DEADLINE_S

    def payload(self, task: Task) -> dict[str, Any]:
        """Of the job, with what its answer holds for: a release of Kernelwright and an architecture."""
        asked: dict[str, Any] = {"builds_only": True} if self.builds_only else {"seed": self.seed}
        if self.time_budget_s is not None and not self.builds_only:
            asked["time_budget_s"] = self.time_budget_s
        return {**asked, "version": __version__, "arch": task.build.arch or default_arch(task.language)}


@dataclass(frozen=True)
class Tested:
    """One task file and its answer."""

    file: str
    """Relative to the folder."""
    state: State
    reason: str | None = None
    """In full; None where nothing is wrong."""
    group: str | None = None
    """The reason without what is this task's own, so that equal ones can be counted."""
    acceptance: Mapping[str, Any] | None = None
    """As `check --json` prints it, where there is one."""
    total_s: float | None = None
    device_s: float | None = None
    """How long the job held the device, or the cores, for runs."""

    def to_json(self) -> dict[str, Any]:
        return vars(self)


def is_folder_of_tasks(path: Path) -> bool:
    """Whether `path` is a folder that may hold many tasks, and is no task itself."""
    return path.is_dir() and not (path / TASK_FILE).exists()


def task_files(folder: Path) -> list[Path]:
    """Every task file below a folder, sorted. Raises UsageError where there is none."""
    found = [path for path in sorted(folder.rglob("*.toml")) if path.is_file() and _looks_like_a_task(path)]
    if not found:
        raise UsageError(
            f"there is no task file in {folder}",
            "a task file, or a folder with some",
            "kernelwright init, or kernelwright tasks, to make some",
        )
    return found


def _looks_like_a_task(path: Path) -> bool:
    try:
        return "[[region]]" in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def lacking(folder: Path) -> dict[Path, str]:
    """What the tasks of a folder's listing lack, by task file."""
    listing = read_listing(folder)
    benchmarks = listing.benchmarks if listing is not None else ()
    return {
        folder / made.file: ", ".join(benchmark.lacks)
        for benchmark in benchmarks
        for made in benchmark.tasks
        if benchmark.lacks
    }


def sampled(files: Sequence[Path], count: int | None, seed: int) -> list[Path]:
    """`count` of the files at random, in their order; all of them for None or where there are no more."""
    if count is None or count >= len(files):
        return list(files)
    return sorted(random.Random(seed).sample(list(files), count))


def answers_folder(folder: Path) -> PoolFolder:
    """Where the answers of a folder's tasks are kept on this machine."""
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    return PoolFolder(state_home() / "checked" / digest)


def jobs(files: Iterable[Path], how: How, folder: PoolFolder) -> dict[Path, JobSpec | str]:
    """The job of each task file, its archive put into the folder; for one that is no task, why."""
    made: dict[Path, JobSpec | str] = {}
    for path in files:
        try:
            task = load_task(path)
            made[path] = JobSpec("accept", how.payload(task), put(task, folder), how.deadline_s)
        except TaskError as error:
            made[path] = str(error)
    return made


def tested(base: Path, path: Path, spec: JobSpec | str, done: Finished | None) -> Tested:
    """What came of one file of the folder `base`."""
    name = path.relative_to(base).as_posix()
    if isinstance(spec, str):
        return Tested(name, "unread", spec, grouped(spec))
    if done is None:
        return Tested(name, "open")
    total_s, device_s = round(done.times.total_s, 3), round(done.times.running_s, 3)
    if done.value is None:
        said = re.sub(r"^\S*/files/", "", (done.error or {}).get("what", ""))  # where the worker had unpacked it
        return Tested(name, "unfit", said, grouped(said), None, total_s, device_s)
    reasons = done.value["reasons"]
    state: State = "refused" if reasons else "accepted" if done.value["accepted"] else "builds"
    group = grouped(reasons[0]) if reasons else None
    return Tested(name, state, "; ".join(reasons) or None, group, done.value, total_s, device_s)


def grouped(reason: str) -> str:
    """A reason without names, places and numbers of its task: what it shares with others of its kind."""
    text = re.sub(r"^\S*\.toml: ", "", reason)
    text = re.sub(r"^region '[^']*'[,:] |, (?:run|file|region) '[^']*'", "", text)
    text = re.sub(r" \([^()]*\)", "", text)
    if text.startswith("probe "):
        return text[:160]
    head, _, rest = text.partition(": ")
    if head.endswith(" fails"):
        head = f"{head}: {rest.partition(': ')[0]}"
    return re.sub(r"'[^']*'|\d[\d.e+-]*", "…", head)[:160]


def by_reason(found: Iterable[Tested]) -> list[tuple[State, str, list[str]]]:
    """(state, group, files) of all that were not accepted, the commonest first."""
    groups: dict[tuple[State, str], list[str]] = {}
    for one in found:
        if one.group is not None:
            groups.setdefault((one.state, one.group), []).append(one.file)
    return [(state, group, files) for (state, group), files in sorted(groups.items(), key=lambda item: -len(item[1]))]


def write_answers(path: Path, found: Iterable[Tested]) -> None:
    """One line for each task."""
    path.write_text("".join(json.dumps(one.to_json(), default=dict) + "\n" for one in found), encoding="utf-8")


def read_answers(path: Path) -> dict[str, Tested]:
    """What `write_answers` wrote, by file. Raises UsageError."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {row["file"]: Tested(**row) for row in rows}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{path} cannot be read as answers: {error}", "what `check DIR --out FILE` wrote", "check DIR --out FILE"
        ) from None
