"""Compilers and what they say: argument allow-lists, reports, disassembly, occupancy, kernel time, devices.

This module holds what its rooms share: a compile command as the build really gave it, and the way to run a command in
the sandbox over a workspace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.sandbox import JobResult


@dataclass(frozen=True)
class CompileCommand:
    """One compiler call of a build, as the interposed compiler recorded it."""

    argv: tuple[str, ...]
    """argv[0] is the compiler's path as called; the candidate's compile arguments are already in it."""
    cwd: str
    """A path inside the sandbox."""
    sources: tuple[str, ...]
    """The source files among the arguments, as given."""
    output: str | None
    """The value of -o, as given."""
    depends: tuple[str, ...] = ()
    """Repository files it reads (sources and headers), relative to the repository's root."""


Exec = Callable[[Sequence[str], str], Awaitable[JobResult]]
"""Runs (argv, cwd inside the sandbox) over a workspace; writes there are allowed and thrown away afterwards."""


@dataclass(frozen=True)
class Report:
    """What a tool shows the model (`text`) and what the trace keeps (`data`, JSON)."""

    text: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """One line of `kernelwright doctor`: a thing of the machine, whether it works, what it is, what to do if not."""

    name: str
    works: bool
    detail: str
    advice: str = ""
