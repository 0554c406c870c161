"""A run's own folder in the state folder: the files that it leaves, and the lock that says whether it is worked on.

The store cannot know that a process was killed; a lock that its owner held is gone with the owner.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelwright.errors import UsageError
from kernelwright.state import state_home
from kernelwright.store import Run
from kernelwright.task import Task

LOCK = "lock"


def folder_of(run: Run) -> Path:
    return state_home() / "runs" / run.id


def patch_name(task: Task) -> str:
    """File names have at most 255 bytes."""
    return task.name.encode()[:240].decode(errors="ignore") + ".patch"


@contextmanager
def worked_on(run: Run) -> Iterator[None]:
    """Hold the run; raises UsageError where another process does."""
    folder_of(run).mkdir(parents=True, exist_ok=True)
    with (folder_of(run) / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"run {run.id} is being worked on by another process", "a run that nobody holds", "when that one ended"
            ) from None
        yield


def status_of(run: Run) -> str:
    """The run's status as of now: one whose process was killed is interrupted."""
    if run.status != "running":
        return run.status
    try:
        with (folder_of(run) / LOCK).open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return "running"
    except FileNotFoundError:
        pass
    return "interrupted"


def remove_files(run: Run) -> None:
    folder = folder_of(run)
    for file in folder.glob("*") if folder.is_dir() else ():
        file.unlink()
    if folder.is_dir():
        folder.rmdir()
