"""Lines of a run target as runs of a task: commands without a shell, with what they set in the environment."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

NO_RUN = "The Makefile's run target"


@dataclass(frozen=True)
class RunDraft:
    """One `[[run]]` of a task file to be; not `active` where it goes into the file as a comment only."""

    name: str
    command: str
    env: Mapping[str, str] = field(default_factory=dict)
    role: str = "shown"
    note: str = ""
    active: bool = True


def read_runs(lines: Sequence[str], told: bool) -> tuple[list[RunDraft], list[str]]:
    """The runs that the lines of a run target start, and notes on the other lines; `told` says whether there is a target."""
    runs: list[RunDraft] = []
    notes: list[str] = []
    for line in lines:
        parsed = _run_line(line)
        if parsed is None:
            notes.append(f"The run target also has: {line}")
        elif parsed.command not in [run.command for run in runs]:
            runs.append(parsed)
    if not runs:
        where = "says nothing that could be run" if told else "is missing"
        return [], [*notes, f"{NO_RUN} {where}: fill in the command."]
    program = _program(runs[0].command)
    named: list[RunDraft] = []
    for number, run in enumerate(runs):
        same = _program(run.command) == program
        role = "shown" if number == 0 else "held_out"
        note = "" if same else "another program"
        named.append(replace(run, name=["first", "second"][number] if number < 2 else f"run {number + 1}", role=role,
                             note=note, active=number < 2 and same))  # fmt: skip
    return named, notes


def _program(command: str) -> str:
    words = shlex.split(command)
    return next((word for word in words if word.startswith(("./", "../"))), words[0])


_HOUSEKEEPING = re.compile(
    "rm|mkdir|echo|diff|cp|mv|ulimit|cat|make|gunzip|for|if|tar|wget|cmp|sleep|exit|export|true|printf|unzip|cd|ln|touch"
)
_LAUNCHERS = {"mpirun", "mpiexec", "orterun", "srun", "jsrun", "aprun", "numactl", "taskset"}
"""Programs that start the program; where another machine has them says nothing of this one."""
_SHELL = re.compile(r"[|&;<>`$*?]")


def _run_line(line: str) -> RunDraft | None:
    """One line of a run recipe as a command without a shell, or None where it starts no program of ours."""
    line = re.sub(r"\s*(?:2>&1\s*)?\|\s*tee\b.*$", "", line).strip().rstrip(";").strip()
    line = re.sub(r"\s*&&\s*cd \.\.?$", "", line)
    folder = re.match(r"cd ([\w./-]+)\s*(?:&&|;)\s*(.*)", line)
    rest = folder[2] if folder else line
    env: dict[str, str] = {}
    while assignment := re.match(r"([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|\S*)\s+(.+)", rest):
        env[assignment[1]] = assignment[2].strip("\"'")
        rest = assignment[3]
    rest = re.sub(r"^(?:time|env)\s+", "", rest)
    try:
        words = shlex.split(rest)
    except ValueError:
        return None
    if not words or _HOUSEKEEPING.fullmatch(words[0]):
        return None
    if _SHELL.search(rest):
        return RunDraft("", shlex.join(["sh", "-c", f"cd {folder[1]} && {rest}" if folder else rest]), env,
                        note="the line needs a shell")  # fmt: skip
    if words[0].startswith("/") and PurePosixPath(words[0]).name in _LAUNCHERS and not Path(words[0]).exists():
        words[0] = PurePosixPath(words[0]).name
    prefix = ["env", f"--chdir={folder[1]}"] if folder else []
    return RunDraft("", shlex.join([*prefix, *words]), env)
