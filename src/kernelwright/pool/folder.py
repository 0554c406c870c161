"""What a pool leaves on disk: archives of tasks, one result for each job, a word from each worker.

    archives/HASH.tar.gz    a task with its repository (`archive`)
    specs/ID.json           jobs that a driver wants done
    results/ID.json         their results: written whole, once, by whoever was first
    workers/NAME.json       what each worker is doing, and since when
    aside/NAME.json         workers that may take no more jobs, with the reason
    status.json             the driver's count (`board`)

On a cluster the folder lies on a file system that all machines share. Nothing here is ever changed in place.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kernelwright.errors import JobFault, UsageError
from kernelwright.pool import Finished

PARTS = ("archives", "specs", "results", "workers", "aside")


class PoolFolder:
    """The folder at `path`, made where it is missing. Raises JobFault where the disk does not take it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for part in PARTS:
            with disk_faults(path):
                (path / part).mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def driven(self) -> Iterator[None]:
        """Drive the folder as its only driver. Raises UsageError where another process of this machine does: its results
        would bear it, being written once, but not its count and its workers' words. A file system without locks has none."""
        held = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            raise UsageError(
                f"{self.path} is driven by another process",
                "a folder that nobody drives",
                f"kernelwright pool status {self.path} --watch",
            ) from None
        except OSError:
            pass
        try:
            yield
        finally:
            os.close(held)

    def result(self, job: str) -> Finished | None:
        """What a job found; None where nobody has finished it."""
        data = read_json(self.path / "results" / f"{job}.json")
        return Finished.from_json(data) if data is not None else None

    def keep(self, finished: Finished) -> Finished:
        """Keep a job's result and return the one that is kept: whoever was first has written it."""
        target = self.path / "results" / f"{finished.id}.json"
        with self._written(target, _text(finished.to_json())) as part:
            try:
                os.link(part, target)
            except FileExistsError:
                return self.result(finished.id) or finished
        return finished

    def forget(self, jobs: Iterable[str]) -> None:
        """Drop the results of jobs, so that they can be made again."""
        for job in jobs:
            with disk_faults(self.path):
                (self.path / "results" / f"{job}.json").unlink(missing_ok=True)

    def results(self) -> list[Finished]:
        """All of them, in no order."""
        found = (read_json(path) for path in (self.path / "results").glob("*.json"))
        return [Finished.from_json(data) for data in found if data is not None]

    def put(self, part: str, name: str, data: Mapping[str, Any]) -> None:
        """Write `part`/`name`.json as a whole, in place of what is there."""
        target = self.path / part / f"{name}.json"
        with self._written(target, _text(data)) as new:
            new.replace(target)

    def put_bytes(self, target: Path, data: bytes) -> None:
        """Write a file of the folder that is known by its content: what is there already stays."""
        if not target.exists():
            with self._written(target, data) as new:
                new.replace(target)

    def get(self, part: str, name: str) -> dict[str, Any] | None:
        return read_json(self.path / part / f"{name}.json")

    def all(self, part: str) -> dict[str, dict[str, Any]]:
        """Name → content of every file of a part."""
        found = {path.stem: read_json(path) for path in sorted((self.path / part).glob("*.json"))}
        return {name: data for name, data in found.items() if data is not None}

    @contextlib.contextmanager
    def _written(self, target: Path, data: bytes) -> Iterator[Path]:
        """The bytes beside their place, safe on disk; gone at the end unless they were moved."""
        part = target.parent / f".{target.stem[:64]}.{secrets.token_hex(4)}.part"
        with disk_faults(self.path):
            try:
                with part.open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                yield part
            finally:
                part.unlink(missing_ok=True)


def _text(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data).encode()


def read_json(path: Path) -> dict[str, Any] | None:
    """A file's object; None where there is none, or none that is whole."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


@contextlib.contextmanager
def disk_faults(path: Path) -> Iterator[None]:
    """Raises a JobFault for what the disk below `path` refuses."""
    try:
        yield
    except OSError as error:
        raise JobFault(
            f"the pool's folder {path} cannot be written: {error.strerror}",
            "a folder with free space that this user may write",
            "another folder",
        ) from None
