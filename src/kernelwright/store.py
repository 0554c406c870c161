"""The one place where runs are kept: an SQLite file in the state folder, so that nothing reported is ever lost.

WAL with synchronous=FULL: whatever a method has returned from survives `kill -9` of the process (and, on a disk that
honours fsync, a loss of power). One process at a time writes, others wait; readers never do. SQLite's locks do not hold
on network file systems, so the store refuses to lie on one. What the rows mean is for the runner and the report to say.
"""

from __future__ import annotations

import json
import re
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernelwright.errors import InfrastructureError, UsageError
from kernelwright.outcome import Verdict
from kernelwright.state import state_home
from kernelwright.trace import Candidate, Message, StopReason

SCHEMA = 1
STORE_FILE = "runs.sqlite3"
NETWORK_FILE_SYSTEMS = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "afs", "9p", "orangefs",
    "panfs", "wekafs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.juicefs",
})  # fmt: skip
_TABLES = """
CREATE TABLE runs (id TEXT PRIMARY KEY, kind TEXT NOT NULL, task TEXT NOT NULL, created TEXT NOT NULL,
                   status TEXT NOT NULL, options TEXT NOT NULL, provenance TEXT NOT NULL);
CREATE TABLE attempts (run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, attempt INTEGER NOT NULL,
                       stop TEXT NOT NULL, answer TEXT, PRIMARY KEY (run, attempt));
CREATE TABLE messages (run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, attempt INTEGER NOT NULL,
                       position INTEGER NOT NULL, message TEXT NOT NULL, PRIMARY KEY (run, attempt, position));
CREATE TABLE verdicts (run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, attempt INTEGER NOT NULL,
                       verdict TEXT NOT NULL, PRIMARY KEY (run, attempt));
CREATE TABLE results (run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE, name TEXT NOT NULL, result TEXT NOT NULL,
                      PRIMARY KEY (run, name));
"""


@dataclass(frozen=True)
class Run:
    """One command that was started on a task. `status` is `running` until the command says otherwise."""

    id: str
    kind: str
    """The command, as in optimize or verify."""
    task: str
    """The task file's path."""
    created: str
    """ISO 8601, UTC."""
    status: str
    options: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Attempt:
    """How one rollout of a run ended."""

    attempt: int
    stop: StopReason
    answer: Candidate | None


class Store:
    """An open store; a context manager. Every method that writes has written when it returns."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db = connection
        self.path = path

    @staticmethod
    def open(path: Path | None = None) -> Store:
        """The store at `path`, by default in the state folder, made where there is none.

        Raises InfrastructureError for a network file system, a file that is no store, a disk that cannot be written, and
        a store that a newer version wrote.
        """
        path = path or state_home() / STORE_FILE
        if kind := network_file_system(path.parent):
            raise InfrastructureError(
                f"{path} would lie on a network file system ({kind}), where SQLite's locks do not hold",
                "a folder on a local disk",
                "set KERNELWRIGHT_HOME to one",
            )
        with _faults(path):
            connection = sqlite3.connect(path, timeout=60, isolation_level=None)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            store = Store(connection, path)
            store._prepare()
        return store

    def _prepare(self) -> None:
        with self._writing():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in filter(str.strip, _TABLES.split(";")):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version={SCHEMA}")
            elif version > SCHEMA:
                raise InfrastructureError(
                    f"{self.path} was written by a newer version of kernelwright (schema {version})",
                    f"schema {SCHEMA}",
                    "upgrade kernelwright, or set KERNELWRIGHT_HOME to another folder",
                )

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction: all of it is on disk afterwards, or none."""
        with _faults(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # SQLite may have rolled back by itself, as where the disk is full
                    self._db.execute("ROLLBACK")
                raise

    def _rows(self, question: str, *parameters: object) -> list[Any]:
        with _faults(self.path):
            return self._db.execute(question, parameters).fetchall()

    def create_run(
        self, kind: str, task: str, options: dict[str, Any], provenance: dict[str, Any] | None = None
    ) -> Run:
        """A new run with a random id, status `running`."""
        run = Run(
            secrets.token_hex(4),
            kind,
            task,
            datetime.now(UTC).isoformat(timespec="milliseconds"),
            "running",
            options,
            provenance or {},
        )
        row = (run.id, kind, task, run.created, run.status, _dump(options), _dump(run.provenance))
        with self._writing():
            self._db.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return run

    def set_status(self, run: str, status: str) -> None:
        with self._writing():
            self._db.execute("UPDATE runs SET status = ? WHERE id = ?", (status, run))

    def amend(self, run: Run) -> None:
        """Keep other options and provenance of a run, those that it goes on with."""
        with self._writing():
            self._db.execute(
                "UPDATE runs SET options = ?, provenance = ? WHERE id = ?",
                (_dump(run.options), _dump(run.provenance), run.id),
            )

    def append_message(self, run: str, attempt: int, message: Message) -> None:
        """Keep the next message of an attempt."""
        with self._writing():
            self._db.execute(
                "INSERT INTO messages SELECT ?, ?, COALESCE(MAX(position) + 1, 0), ? FROM messages "
                "WHERE run = ? AND attempt = ?",
                (run, attempt, _dump(message.to_json()), run, attempt),
            )

    def messages(self, run: str, attempt: int) -> list[Message]:
        """The messages of an attempt so far, in order: enough to go on from."""
        rows = self._rows("SELECT message FROM messages WHERE run = ? AND attempt = ? ORDER BY position", run, attempt)
        return [Message.from_json(json.loads(text)) for (text,) in rows]

    def attempts_begun(self, run: str) -> list[int]:
        """The numbers of the attempts that have at least one message."""
        rows = self._rows("SELECT DISTINCT attempt FROM messages WHERE run = ? ORDER BY attempt", run)
        return [attempt for (attempt,) in rows]

    def finish_attempt(self, run: str, attempt: int, stop: StopReason, answer: Candidate | None) -> None:
        """Keep how an attempt ended; a later call (after a resume) replaces an earlier one."""
        text = _dump(answer.to_json()) if answer is not None else None
        with self._writing():
            self._db.execute("INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?)", (run, attempt, stop.value, text))

    def attempts(self, run: str) -> list[Attempt]:
        """The attempts that have ended."""
        rows = self._rows("SELECT attempt, stop, answer FROM attempts WHERE run = ? ORDER BY attempt", run)
        return [Attempt(attempt, StopReason(stop), _candidate(answer)) for attempt, stop, answer in rows]

    def save_verdict(self, run: str, attempt: int, verdict: Verdict) -> None:
        """Keep the verdict on an attempt's answer; a later one replaces it."""
        with self._writing():
            self._db.execute(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", (run, attempt, _dump(verdict.to_json()))
            )

    def verdicts(self, run: str) -> dict[int, dict[str, Any]]:
        """Attempt → its verdict in JSON form."""
        rows = self._rows("SELECT attempt, verdict FROM verdicts WHERE run = ? ORDER BY attempt", run)
        return {attempt: json.loads(text) for attempt, text in rows}

    def save_result(self, run: str, name: str, result: dict[str, Any]) -> None:
        """Keep a named JSON result of a run, as what a command printed; a later one replaces it."""
        with self._writing():
            self._db.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", (run, name, _dump(result)))

    def result(self, run: str, name: str) -> dict[str, Any] | None:
        rows = self._rows("SELECT result FROM results WHERE run = ? AND name = ?", run, name)
        found: dict[str, Any] | None = json.loads(rows[0][0]) if rows else None
        return found

    def runs(self) -> list[Run]:
        """All runs in the order in which they were begun, whatever the clock said then."""
        return [_run(row) for row in self._rows("SELECT * FROM runs ORDER BY rowid")]

    def find(self, prefix: str) -> Run:
        """The run whose id starts with `prefix`, or the newest for `last`. Raises UsageError for none and for several."""
        runs = self.runs()
        found = runs[-1:] if prefix == "last" else [r for r in runs if prefix and r.id.startswith(prefix.lower())]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(f"{run.id} ({run.kind} of {run.task}, {run.created})" for run in found[:8])
            raise UsageError(
                f"{prefix!r} names {len(found)} runs: {names}", "a prefix of one run's id", "more of the id"
            )
        newest = ", ".join(run.id for run in runs[-3:])
        raise UsageError(f"there is no run {prefix!r}", "the beginning of a run's id, or last",
                         f"one of the newest, {newest}; kernelwright runs lists all" if newest else
                         "kernelwright optimize makes one")  # fmt: skip

    def delete(self, run: str) -> None:
        """Remove a run and all that belongs to it."""
        with self._writing():
            self._db.execute("DELETE FROM runs WHERE id = ?", (run,))


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise InfrastructureError(f"the store {path} failed: {error}", "a healthy SQLite file on a disk with space",
                                  "set KERNELWRIGHT_HOME to another folder") from error  # fmt: skip


def _dump(value: object) -> str:
    return json.dumps(value)


def _run(row: tuple[str, ...]) -> Run:
    name, kind, task, created, status, options, provenance = row
    return Run(name, kind, task, created, status, json.loads(options), json.loads(provenance))


def _candidate(text: str | None) -> Candidate | None:
    if text is None:
        return None
    data = json.loads(text)
    return Candidate(data["final_code"], tuple(data["compile_args"]), data["explanation"])


def network_file_system(folder: Path, mounts: Path = Path("/proc/mounts")) -> str | None:
    """The type of the network file system that `folder` lies on, or None where it is a local one (or cannot be told)."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return None
    best, kind = -1, ""
    where = folder.resolve()
    for line in lines:
        words = line.split(" ")
        if len(words) < 3:
            continue
        point, file_system = words[1:3]
        mount = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point))
        if where.is_relative_to(mount) and len(mount.parts) >= best:
            best, kind = len(mount.parts), file_system
    return kind if kind in NETWORK_FILE_SYSTEMS else None
