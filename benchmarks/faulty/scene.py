"""One trial's scene: a fresh copy of the small application, a state folder, a command, and what it gives undisturbed.

The application is that of the tests. A model's script tries a candidate that does not build, one that is wrong, one that
crashes and one that is good, so that a fault has outcomes to be mistaken for.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from app import FASTER, SMOOTH, WRONG, make_app

BROKEN = SMOOTH.replace("double sum = 0.0;", "double sum = nothing_of_this_name;")
CRASHES = SMOOTH.replace("out[i] = sum;", "out[i == n - 1 ? i + 400000000 : i] = sum;")
OUTCOMES = {"broken": "build_failed", "wrong": "wrong_result", "crashes": "crashed", "good": "correct"}
CANDIDATES = {"broken": BROKEN, "wrong": WRONG, "crashes": CRASHES, "good": FASTER}
PROGRAM = (sys.executable, "-m", "kernelwright")
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def script(names: Sequence[str]) -> list[str]:
    """What the model says: a benchmark of each candidate, then the last one as its answer."""
    call = '<tool_call>\n{"name": "benchmark_code", "arguments": {}}\n</tool_call>'
    tried = [f"Attempt at {name}.\n```cpp\n{CANDIDATES[name]}```\n{call}" for name in names]
    answer = {"final_code": f"c{len(names)}", "explanation": "The weights are tabulated.", "compile_args": []}
    return [*tried, json.dumps(answer)]


@dataclass(frozen=True)
class Command:
    """A command of the product and what it gives where nothing disturbs it. `{url}` in a word is the chat server's."""

    name: str
    words: tuple[str, ...]
    code: int
    tries: tuple[str, ...] = ()
    """The candidates of the model's script."""

    @property
    def resumes(self) -> bool:
        return self.words[0] == "optimize"


MODEL = ("optimize", "{app}", "--model", "scripted", "--base-url", "{url}", "--answer-timeout", "2", "--json")
COMMANDS = {
    command.name: command
    for command in (
        Command("model", (*MODEL, "--attempts", "2"), 0, ("broken", "wrong", "crashes", "good")),
        Command("model, short", MODEL, 0, ("wrong", "good")),
        Command("rules", ("optimize", "{app}", "--policy", "rules", "--max-calls", "2", "--json"), 0),
        Command("verify good", ("verify", "{app}", "{good}", "--json"), 0),
        Command("verify wrong", ("verify", "{app}", "{wrong}", "--json"), 1),
        Command("verify broken", ("verify", "{app}", "{broken}", "--json"), 1),
        Command("verify crashes", ("verify", "{app}", "{crashes}", "--json"), 1),
        Command("bench", ("bench", "{app}", "--runs", "5", "--json"), 0),
        Command("check", ("check", "{app}", "--json"), 0),
    )
}


@dataclass
class Said:
    """How a command of the product ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self.out)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


@dataclass
class Scene:
    """The folders of one trial below `folder`; `env` is added to the product's environment."""

    folder: Path
    command: Command
    url: str = ""
    env: dict[str, str] = field(default_factory=dict)
    runs: int = 0

    def __post_init__(self) -> None:
        self.app, self.home, self.scratch = (self.folder / name for name in ("repo", "home", "tmp"))
        for folder in (self.home, self.scratch):
            folder.mkdir(parents=True)
        make_app(self.app)
        self.places = {"app": str(self.app), "url": self.url}
        for name, text in CANDIDATES.items():
            path = self.folder / f"{name}.json"
            path.write_text(json.dumps({"final_code": text, "explanation": "", "compile_args": []}))
            self.places[name] = str(path)
        self.before = fingerprint(self.app)

    def start(self, words: Sequence[str] | None = None) -> subprocess.Popen[bytes]:
        """Start the command, or other `words` of the product; what it says goes into files, so that no pipe can fill."""
        self.runs += 1
        given = [word.format(**self.places) for word in words or self.command.words]
        env = {**os.environ, "KERNELWRIGHT_HOME": str(self.home), "TMPDIR": str(self.scratch), **self.env}
        with self._said("out").open("wb") as out, self._said("err").open("wb") as err:
            return subprocess.Popen([*PROGRAM, *given], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env,
                                    preexec_fn=_heed_interruptions)  # fmt: skip

    def _said(self, stream: str) -> Path:
        return self.folder / f"{self.runs}.{stream}"

    def ended(self, process: subprocess.Popen[bytes], limit_s: float = 240.0) -> Said:
        code = process.wait(limit_s)
        out, err = (self._said(stream).read_text(errors="replace") for stream in ("out", "err"))
        return Said(code, out, err)

    def run(self, *words: str) -> Said:
        return self.ended(self.start(words or None))

    def again(self) -> Said:
        """What a user does next: go on with the run where there is one, else the same command again."""
        if self.command.resumes and kept(self.home)["runs"]:
            return self.run("optimize", "--resume", "last", "--json")
        return self.run()


def _heed_interruptions() -> None:
    """Whoever starts the harness in the background lets it inherit ignored signals, which the product then ignores too."""
    for number in INTERRUPTIONS:
        signal.signal(number, signal.SIG_DFL)


def fingerprint(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Everything below `folder`: mode, time of the last change, content."""
    seen = {}
    for path in sorted([folder, *folder.rglob("*")]):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        seen[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, content)
    return seen


TABLES = ("runs", "messages", "attempts", "verdicts", "results")


def kept(home: Path) -> dict[str, list[dict[str, Any]]]:
    """Every row of the store as it lies on the disk now, read from a copy so that nothing of it is changed by looking."""
    store, look = home / "runs.sqlite3", home.parent / "look"
    if not store.exists():
        return {table: [] for table in TABLES}
    shutil.rmtree(look, ignore_errors=True)
    look.mkdir()
    for suffix in ("", "-wal"):
        if (source := Path(f"{store}{suffix}")).exists():
            shutil.copy(source, look / source.name)
    database = sqlite3.connect(look / store.name)
    database.row_factory = sqlite3.Row
    try:
        there = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        return {
            table: [dict(row) for row in database.execute(f"SELECT * FROM {table} ORDER BY rowid")]
            if table in there
            else []
            for table in TABLES
        }
    finally:
        database.close()
        shutil.rmtree(look)


TOLD = re.compile(r"^\s*[\d.]+ s\s+attempt (\d+)\s+benchmark_code\s+(c\d+) (\w+)", re.MULTILINE)


def told(said: Said) -> set[tuple[int, str, str]]:
    """What the command told its user of candidates: attempt (from 0), candidate, outcome."""
    return {(int(attempt) - 1, candidate, outcome) for attempt, candidate, outcome in TOLD.findall(said.err)}


def tried(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[int, str, str, str]]:
    """The benchmarks that the store holds: attempt, candidate's id, its text, its outcome."""
    found, texts = [], dict[str, str]()
    for row in rows["messages"]:
        message = json.loads(row["message"])
        for call in message.get("tool_calls") or ():
            texts[f"{row['attempt']}/{call['id']}"] = message["content"]
        data = message.get("data") or {}
        if message["role"] == "tool" and "candidate" in data:
            text = texts.get(f"{row['attempt']}/{message.get('tool_call_id')}", "")
            found.append((row["attempt"], data["candidate"], text, data["outcome"]))
    return found
