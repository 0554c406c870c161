"""The real command line, in this process (fast) or as a program of its own (signals, streams, mounts), and a look at a
folder that sees any change in it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernelwright import cli, proving, runner
from kernelwright.outcome import Comparison, Interval, Outcome, Verdict
from kernelwright.store import Run, Store
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate, Message, StopReason

PROGRAM = (sys.executable, "-m", "kernelwright")


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> dict[str, Any]:
        """The one object on stdout, by the letter of the JSON standard."""
        assert self.out.count("\n") == 1, self.out + self.err

        def refuse(word: str) -> None:
            raise AssertionError(f"{word} is not JSON")

        found: dict[str, Any] = json.loads(self.out, parse_constant=refuse)
        return found

    @property
    def error(self) -> dict[str, str]:
        """The failure's object, complete: each of the three things that a message must say is said."""
        assert "Traceback" not in self.err
        assert set(self.data) == {"error"}, self.out
        error: dict[str, str] = self.data["error"]
        assert set(error) == {"kind", "what", "expected", "try"}
        assert all(error.values()), error
        return error


def kernelwright(capsys: pytest.CaptureFixture[str], *arguments: object) -> Said:
    """Run a command in this process."""
    capsys.readouterr()
    code = cli.run([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return Said(code, said.out, said.err)


def program(
    *arguments: object, env: Mapping[str, str | None] | None = None, before: Sequence[str] = (), **options: Any
) -> Said:
    """Run a command as a program; `env` changes the environment (None removes), `before` stands before the program."""
    words = [*before, *PROGRAM, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, env=environment(env), timeout=120, check=False, **options)
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def environment(changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    merged = {**os.environ, **(changes or {})}
    return {name: value for name, value in merged.items() if value is not None}


def fingerprint(folder: Path) -> dict[str, tuple[int, int, int, str]]:
    """Everything below `folder`: mode, size, time of the last change, content. Two looks are equal where nothing changed."""
    seen = {}
    for path in sorted([folder, *folder.rglob("*")]):
        status = path.lstat()
        content = str(path.readlink()) if path.is_symlink() else ""
        if path.is_file() and not path.is_symlink():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        seen[str(path)] = (status.st_mode, status.st_size, status.st_mtime_ns, content)
    return seen


def finished(app: Path, answer: Candidate, comparison: Comparison = Comparison.FASTER) -> Run:
    """A run of optimize that ended with this answer, without the hours of one."""
    task = load_task(app)
    options = runner.Options("rules")
    with Store.open() as store:
        run = store.create_run("optimize", str(task.path), runner.options_json(options), {"task": task.name})
        store.append_message(run.id, 0, Message("user", "the task"))
        store.finish_attempt(run.id, 0, StopReason.ANSWERED, answer)
        verdict = Verdict(task.name, Outcome.CORRECT, "", comparison, 2.0, Interval(1.9, 2.1), 0.99)
        result = proving.result_of(
            task, store, run, proving.Proposal(0, answer, 2.0), verdict, {"code": 2.0, "flags": 1.0}
        )
        store.save_result(run.id, "optimize", result)
        store.set_status(run.id, "done")
        return run
