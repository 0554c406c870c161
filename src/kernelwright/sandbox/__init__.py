"""Where every job runs: a closed room with the workspace in it and nothing else of the machine.

This module is the seam: what a job is, what comes of it, and the Protocol that backends implement. Backends:
`bubblewrap`, `namespaces` (the same room without bubblewrap), `podman`, `docker` and `apptainer` (a container of an image
that the user names), and `none` (explicit, recorded, for machines that have no isolation and users who accept it).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Limits:
    """What one job may use. Passing one of these is the job's own doing, never an infrastructure fault."""

    wall_s: float = 60.0
    memory_bytes: int = 8 * 2**30
    processes: int = 512
    file_bytes: int = 2 * 2**30
    """The largest single file it may write."""
    disk_bytes: int = 4 * 2**30
    """All that it may write into its writable folders together."""
    output_bytes: int = 8 * 2**20
    """What is kept of stdout and of stderr each; a job that prints ten times as much is stopped."""


@dataclass(frozen=True)
class Bind:
    """A folder or file of the machine that the job sees, at the path `inside`."""

    source: Path
    inside: str
    writable: bool = False


@dataclass(frozen=True)
class Job:
    """One command to run in isolation. Split like a shell's words, run without a shell."""

    argv: tuple[str, ...]
    cwd: str
    """A path inside the sandbox."""
    binds: tuple[Bind, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    """The whole environment, added to a minimal PATH, HOME, TMPDIR and LANG."""
    limits: Limits = Limits()
    gpu: bool = False
    cpus: tuple[int, ...] = ()
    """Cores to pin to; empty for all."""
    unseen: tuple[Path, ...] = ()
    """Folders that the job must not see even where a system folder (/usr, /opt) holds them: the user's repository."""
    terminal: bool = False
    """Give it a pseudo-terminal (raw) as stdout: the C library then writes each line at once, so that a program that is
    killed has said all it printed. Off by default, because programs may print differently to a terminal."""


class LimitHit(StrEnum):
    TIME = "time"
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"
    OUTPUT = "output"


@dataclass(frozen=True)
class JobResult:
    """What became of a job. `exit_code` is None where a signal ended it; `limit` names the limit that it passed."""

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    wall_s: float
    """From the program's exec to its end, taken by the launcher inside, without the sandbox's start-up."""
    cpu_s: float
    """User and system time of the program and its children."""
    max_rss_bytes: int
    limit: LimitHit | None = None
    outside_s: float = 0.0
    """From spawn to end as the parent saw it; never less than `wall_s`."""


@dataclass(frozen=True)
class Probe:
    """Whether a sandbox works on this machine, what it is or what it said, and what to do."""

    works: bool
    detail: str
    advice: str = ""


class Sandbox(Protocol):
    """A backend. Raises SandboxUnavailable or JobFault where the machine, not the job, failed."""

    @property
    def name(self) -> str: ...

    def inside(self, source: Path, inside: str) -> str:
        """The path at which a job sees what `Bind(source, inside)` binds (differs only where there is no isolation)."""
        ...

    def own(self, folder: Path) -> None:
        """Make a folder of ours and everything in it writable for jobs."""
        ...

    async def run(self, job: Job) -> JobResult: ...

    async def probe(self) -> Probe:
        """Try it. Nothing is raised where it does not work."""
        ...
