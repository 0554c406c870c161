"""The product's processes, seen from outside: found by walking children, killed by pid, and none left at the end.

The harness is a subreaper: whatever the product leaves behind comes to it, so that nothing that lives on can be missed,
also what ran in namespaces and sessions of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
COMPILERS = frozenset({"make", "sh", "g++", "c++", "cc", "gcc", "cc1plus", "cc1", "as", "collect2", "ld"})
PATIENCE_S = 10.0
"""How long what was told to end may take to be gone; the launcher's own deadline for killing is 5 s."""


@dataclass(frozen=True)
class Process:
    pid: int
    name: str
    """As in /proc/PID/comm."""
    started: int
    """Clock ticks since the machine's start: with the pid, one process and no other."""

    @property
    def part(self) -> str:
        """What it is in the product's work: sandbox, launcher, compiler, program or product."""
        if self.name in COMPILERS:
            return "compiler"
        return {"bwrap": "sandbox", "launch": "launcher", "app": "program"}.get(self.name, "product")


def become_reaper() -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def look(pid: int) -> Process | None:
    """The process as it is now; None where it is gone or only waits to be collected."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    name, rest = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
    return Process(pid, name, int(rest[19])) if rest[0] not in "ZX" else None


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                yield from map(int, (task / "children").read_text().split())


def below(pid: int) -> list[Process]:
    """All living descendants of a process, parents first."""
    found, waiting = [], [pid]
    while waiting:
        for child in _children(waiting.pop()):
            waiting.append(child)
            if (process := look(child)) is not None:
                found.append(process)
    return found


def kill(process: Process, number: int) -> bool:
    """Whether it was still there to get the signal."""
    if look(process.pid) != process:
        return False
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def left() -> tuple[list[Process], float]:
    """What still lives below us after a while, and how long everything took to be gone (seconds)."""
    start = time.monotonic()
    while True:
        living = below(os.getpid())
        waited = time.monotonic() - start
        if not living or waited > PATIENCE_S:
            _collect()
            return living, waited
        time.sleep(0.02)


def _collect() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
