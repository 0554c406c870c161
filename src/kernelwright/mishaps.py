"""Whose doing it was that a job failed: the candidate's, or the machine's, in its middle.

A process that was killed from outside looks like one that killed itself, a compiler that is gone like code that does not
compile. What tells them apart is another try: what a candidate does, it does again; what the original does too is no
doing of the candidate. So what could be the machine's doing is tried again, and a build that goes on failing is believed
only while the original still builds. Where everything agrees it is an outcome, else an infrastructure fault.
"""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

from kernelwright.errors import InfrastructureError
from kernelwright.interpose import COMPILERS
from kernelwright.sandbox import JobResult

TRIES = 3
"""How often a job is made that ends as if from outside; what ends so every time does it by itself."""
MOST_LOST = 3
"""How many runs of one program may be lost in this way. One that ended so now and then could choose which of its times
are counted."""
OUTSIDE = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM})
"""Signals that no computation brings about: somebody sends them."""
_SHELL = 128
"""A shell, and make, add this to the number of the signal that ended a child."""
_KILLED = re.compile(r"\b(?:Killed|Terminated|Hangup|Interrupt)\b|signal (?:1|2|9|15)\b|died due to signal")
_MACHINE = re.compile(
    r"command not found|cannot exec|cannot find|No such file or directory|Permission denied|Input/output error"
    r"|No space left|[Qq]uota exceeded|Read-only file system|Text file busy|Exec format error|Too many open files"
    r"|[Cc]annot allocate memory|[Oo]ut of memory|memory exhausted|Resource temporarily unavailable"
    r"|file (?:truncated|not recognized)|malformed|corrupt|internal compiler error|Bus error"
)
_TOOLS = (
    r"(?:g\+\+|c\+\+|gcc|cc|clang(?:\+\+)?|nvcc|hipcc|mpi\w+|make|cmake|ninja|sh|as|ld|collect2|cc1(?:plus)?)(?:-\d+)?"
)
_NO_TOOL = re.compile(
    rf"^(?:\S+: )*{_TOOLS}: (?:No such file or directory|command not found|Permission denied|Exec format error)"
    rf"|cannot exec\w* ['‘`]|cannot find ['‘`]{_TOOLS}|^/(?:usr|opt)/\S+: fatal error: \S+: No such file",
    re.MULTILINE,
)
_PLAIN = re.compile(r"\berror(?: #?\w+)?:|undefined reference|multiple definition|\): error")
"""What compilers and linkers say of code."""


def from_outside(result: JobResult) -> bool:
    """Whether a job ended by a signal that somebody sent, and not its launcher for a limit."""
    if result.limit is not None:
        return False
    return result.signal in OUTSIDE or (result.exit_code or 0) - _SHELL in OUTSIDE


def kills_inside(log: str) -> bool:
    """Whether a build's log speaks of a process that was killed."""
    return bool(_KILLED.search(log))


def doubtful(log: str) -> bool:
    """Whether a failed build's log may speak of the machine instead of the code."""
    return kills_inside(log) or bool(_MACHINE.search(log)) or not _PLAIN.search(log)


def lacks_tool(log: str) -> bool:
    """Whether a failed build's log says that a compiler, a part of one, or a header of its own is not there."""
    return bool(_NO_TOOL.search(log))


Identity = tuple[str, int, int, int, int]


def compilers() -> dict[str, Identity]:
    """The compilers on PATH: name → where it really lies, its inode, size and times."""
    found: dict[str, Identity] = {}
    for name in COMPILERS:
        if (path := shutil.which(name)) is not None:
            status = Path(path).stat()
            real = str(Path(path).resolve())
            found[name] = (real, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return found


def require_same(before: Mapping[str, Identity]) -> None:
    """Raises InfrastructureError where a compiler is gone, or is another one: its builds cannot be compared with those of
    before, and what it fails at says nothing of a candidate."""
    now = compilers()
    for name, identity in before.items():
        if now.get(name) != identity:
            became = "has been replaced" if name in now else "is gone"
            raise InfrastructureError(
                f"the compiler {name} ({identity[0]}) {became} since the work began",
                "the compilers to stay as they are",
                "the command again (or --resume) once the compiler is in place; kernelwright doctor",
            )
