"""What a job may try, and what must come of it. No pytest here: a plain user's Python, which may have none, runs it too.

As a script: `python attacks.py PROGRAM FOLDER` runs every attack against the default sandbox as whoever runs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import select
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from kernelwright.sandbox import Bind, Job, JobResult, LimitHit, Limits, Sandbox
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.sandbox.outputs import read_output

MIB = 2**20
LIMITS = Limits(wall_s=20.0, memory_bytes=200 * MIB, processes=128, file_bytes=64 * MIB, disk_bytes=100 * MIB,
                output_bytes=MIB)  # fmt: skip
SHORT = dataclasses.replace(LIMITS, wall_s=0.3)
LARGE_FILES = dataclasses.replace(LIMITS, file_bytes=2**30)
SECRET = b"the root of all evil"


@dataclasses.dataclass(frozen=True)
class Case:
    """One word of attacks.c. The program's exit code, or the limit that must have ended it."""

    name: str
    argument: str = ""
    code: int | None = 1
    limit: LimitHit | None = None
    after: Callable[[Path, JobResult], bool] = lambda folder, result: True
    before: Callable[[Path], None] = lambda folder: None
    limits: Limits = LIMITS


def _stopped(name: str, limit: LimitHit, argument: str = "", **more: object) -> Case:
    return dataclasses.replace(Case(name, argument, None, limit), **more)  # type: ignore[arg-type]


def _no_honest_links(folder: Path, result: JobResult) -> bool:
    refused = ["link", "folder/secret", "fifo", "sparse", "plain", "../secret", "/etc/passwd", "nothing", ""]
    plain = read_output(folder, "plain/file", 6) == b"honest" and read_output(folder, "plain/file", 5) is None
    return plain and all(read_output(folder, name, MIB) is None for name in refused)


def _all_dead(folder: Path, result: JobResult) -> bool:
    """Reading the FIFO to its end is possible only when nobody holds it open for writing."""
    with writers_of(folder / "fifo", already=True) as reader:
        return reader.read_to_end() is not None


class Reader:
    def __init__(self, fd: int) -> None:
        self.fd = fd

    def read(self, patience_s: float = 20.0) -> bytes | None:
        """What comes next; b"" where all writers are gone; None where neither happens."""
        ready, _, _ = select.select([self.fd], [], [], patience_s)
        return os.read(self.fd, 1) if ready else None

    def read_to_end(self) -> bytes | None:
        data = b""
        while (more := self.read()) != b"":
            if more is None:
                return None
            data += more
        return data


@contextlib.contextmanager
def writers_of(fifo: Path, already: bool = False) -> Iterator[Reader]:
    fd = _FIFOS.pop(fifo) if already else os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield Reader(fd)
    finally:
        os.close(fd)


_FIFOS: dict[Path, int] = {}


def _make_fifo(folder: Path) -> None:
    """Held open for reading from before the job on, so that its daemon's open does not wait."""
    os.mkfifo(folder / "fifo")
    (folder / "fifo").chmod(0o666)
    _FIFOS[folder / "fifo"] = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)


def _kept_little(folder: Path, result: JobResult) -> bool:
    return len(result.stdout) == LIMITS.output_bytes


def _kept_secret(folder: Path, result: JobResult) -> bool:
    return SECRET not in result.stdout


CASES = [
    Case("read", "{secret}", after=_kept_secret),
    Case("read", "/etc/passwd", after=_kept_secret),
    Case("read", "/proc/1/environ"),
    Case("read", "/proc/1/root/etc/passwd"),
    *(Case("write", path) for path in ("/new", "/usr/new", "/dev/new", "/run/new", "/etc/new", "/sys/new", "/read_only/new",
                                       "/read_only/file", "/usr/bin/env", "/run/kernelwright/launch",
                                       "/proc/sys/kernel/hostname", "/proc/sysrq-trigger")),
    Case("network", "{port}"),
    Case("kill_parent", code=7),
    Case("trace_parent"),
    Case("trace_child"),
    Case("forge", code=3),
    Case("descriptors", code=0),
    Case("links", "{secret}", code=0, after=_no_honest_links),
    Case("remount"),
    Case("new_user"),
    Case("become_root"),
    Case("kernel_doors"),
    Case("reserve", code=5),
    Case("children", code=0),
    Case("shared_memory", code=5),
    Case("outlive", code=0, before=_make_fifo, after=_all_dead),
    _stopped("outlive_and_wait", LimitHit.TIME, limits=SHORT, before=_make_fifo, after=_all_dead),
    _stopped("loop", LimitHit.TIME, limits=SHORT),
    _stopped("fork_bomb", LimitHit.PROCESSES),
    _stopped("flood", LimitHit.OUTPUT, after=_kept_little),
    _stopped("memory", LimitHit.MEMORY),
    _stopped("memory_in_children", LimitHit.MEMORY),
    _stopped("fill_file", LimitHit.MEMORY, "/tmp/x", limits=LARGE_FILES),
    _stopped("fill_file", LimitHit.MEMORY, "/dev/shm/x", limits=LARGE_FILES),
    _stopped("fill_memory_file", LimitHit.MEMORY, limits=LARGE_FILES),
    _stopped("big_file", LimitHit.DISK),
    _stopped("fill_file", LimitHit.DISK, "big", limits=LARGE_FILES),
    _stopped("many_files", LimitHit.DISK),
    _stopped("nameless_files", LimitHit.DISK),
    _stopped("closed_folder", LimitHit.DISK),
]  # fmt: skip


def name_of(case: Case) -> str:
    return f"{case.name} {case.argument}".strip()


@contextlib.contextmanager
def listening() -> Iterator[int]:
    """A TCP port and an abstract socket of ours that a job must not reach."""
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as named:
        port: int = tcp.getsockname()[1]
        named.bind(f"\0kernelwright-test-{port}")
        named.listen()
        yield port


async def attack(sandbox: Sandbox, case: Case, program: Path, home: Path) -> JobResult:
    """Run one case in folders of its own under `home`; raises AssertionError where it got further than it may."""
    folder, read_only, secret = home / "workspace", home / "read_only", home / "secret"
    folder.mkdir()
    read_only.mkdir()
    (read_only / "file").write_text("ours")
    secret.write_bytes(SECRET)
    secret.chmod(0o644)
    case.before(folder)
    sandbox.own(folder)
    binds = (Bind(program, "/attack"), Bind(read_only, "/read_only"), Bind(folder, "/workspace", writable=True))
    with listening() as port:
        argument = case.argument.format(secret=secret, port=port)
        job = Job(("/attack", case.name, argument), "/workspace", binds, limits=case.limits)
        result = await sandbox.run(job)
    assert (result.exit_code, result.limit) == (case.code, case.limit), f"{name_of(case)}: {result}"
    assert result.wall_s <= result.outside_s
    assert case.after(folder, result), f"{name_of(case)}: {result}"
    return result


async def _all(program: Path, home: Path) -> None:
    sandbox = open_sandbox()
    for number, case in enumerate(CASES):
        (home / str(number)).mkdir()
        await attack(sandbox, case, program, home / str(number))


if __name__ == "__main__":
    asyncio.run(_all(Path(sys.argv[1]), Path(sys.argv[2])))
    print(f"{len(CASES)} attacks refused")
