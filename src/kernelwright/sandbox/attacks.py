"""The conformance suite: what a job may try (`attacks.c`), and what must come of it in every sandbox.

`kernelwright doctor --attacks` runs it on the user's machine, tests on ours. No sandbox is trusted for its name: one that
lets a single attack through is not isolated. Without a sandbox only those are tried that do no harm where they succeed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kernelwright.errors import InfrastructureError
from kernelwright.sandbox import Bind, Job, JobResult, LimitHit, Limits, Sandbox
from kernelwright.sandbox.launch import our_program
from kernelwright.sandbox.outputs import read_output
from kernelwright.sandbox.room import gpu_nodes
from kernelwright.state import state_home

MIB = 2**20
LIMITS = Limits(wall_s=20.0, memory_bytes=200 * MIB, processes=128, file_bytes=64 * MIB, disk_bytes=100 * MIB,
                output_bytes=MIB)  # fmt: skip
SHORT = replace(LIMITS, wall_s=0.3)
LITTLE_MEMORY = replace(LIMITS, memory_bytes=50 * MIB)
LARGE_FILES = replace(LIMITS, file_bytes=2**30)
SECRET = b"the root of all evil"
PATIENCE_S = 20.0
MET = 5
"""The exit code of a job that another one was beside."""


@dataclass(frozen=True)
class Case:
    """One word of attacks.c. The program's exit code, or the limit that must have ended it."""

    name: str
    argument: str = ""
    code: int | None = 1
    limit: LimitHit | None = None
    limits: Limits = LIMITS
    after: Callable[[Path, JobResult], bool] = lambda folder, result: True
    daemon: bool = False
    """It leaves a process that holds the folder's FIFO open; nobody may hold it afterwards."""
    beside: str = ""
    """The word of a second job, in a room of its own at the same time, with the same folder."""
    harmless: bool = False
    """Does no harm where it succeeds."""


def name_of(case: Case) -> str:
    return f"{case.name} {case.argument}".strip()


def _stopped(name: str, limit: LimitHit, argument: str = "", limits: Limits = LIMITS, **more: bool) -> Case:
    return Case(name, argument, None, limit, limits, **more)  # type: ignore[arg-type]


def _no_honest_links(folder: Path, result: JobResult) -> bool:
    refused = ["link", "folder/secret", "fifo", "sparse", "plain", "../secret", "/etc/passwd", "nothing", ""]
    plain = read_output(folder, "plain/file", 6) == b"honest" and read_output(folder, "plain/file", 5) is None
    return plain and all(read_output(folder, name, MIB) is None for name in refused)


def _kept_little(folder: Path, result: JobResult) -> bool:
    return len(result.stdout) == LIMITS.output_bytes


def _kept_secret(folder: Path, result: JobResult) -> bool:
    return SECRET not in result.stdout


CLOSED_PATHS = (
    "/new", "/usr/new", "/dev/new", "/run/new", "/etc/new", "/sys/new", "/read_only/new", "/read_only/file", "/usr/bin/env",
    "/attack", "/run/kernelwright/launch", "/proc/1/exe", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory",
)  # fmt: skip

CASES = [
    Case("read", "{secret}", after=_kept_secret, harmless=True),
    Case("read", "/read_only/closed"),
    Case("read", "/proc/1/environ"),
    Case("read", "/proc/1/root/etc/passwd"),
    Case("read", "/proc/keys"),
    Case("read", "/proc/kcore"),
    *(Case("write", path) for path in CLOSED_PATHS),
    Case("writable_mounts"),
    Case("shared_mounts", harmless=True),
    Case("settings"),
    Case("open_devices"),
    Case("make_devices"),
    Case("network", "{port}", harmless=True),
    Case("other_networks", harmless=True),
    Case("visit", beside="meet", harmless=True),
    Case("kill_parent", code=7),
    Case("trace_parent"),
    Case("trace_child"),
    Case("forge", code=3),
    Case("call_home"),
    Case("descriptors", code=0),
    Case("links", "{secret}", code=0, after=_no_honest_links),
    Case("remount"),
    Case("new_user"),
    Case("become_root"),
    Case("rights", harmless=True),
    Case("set_user_id", "/read_only/set_user_id", harmless=True),
    Case("kernel_doors"),
    Case("memory_program"),
    Case("other_abi"),
    Case("set_clock"),
    Case("real_time"),
    Case("raise_limits"),
    Case("fake_input"),
    Case("reserve", code=5),
    Case("children", code=0),
    Case("shared_memory", code=5),
    Case("outlive", code=0, daemon=True),
    _stopped("outlive_and_wait", LimitHit.TIME, limits=SHORT, daemon=True),
    _stopped("loop", LimitHit.TIME, limits=SHORT),
    _stopped("fork_bomb", LimitHit.PROCESSES),
    replace(_stopped("flood", LimitHit.OUTPUT), after=_kept_little),
    _stopped("memory", LimitHit.MEMORY),
    _stopped("memory_in_children", LimitHit.MEMORY),
    _stopped("segments", LimitHit.MEMORY),
    _stopped("full_buffers", LimitHit.MEMORY, limits=LITTLE_MEMORY),
    _stopped("many_names", LimitHit.MEMORY, limits=LITTLE_MEMORY),
    _stopped("fill_file", LimitHit.MEMORY, "/tmp/x", limits=LARGE_FILES),
    _stopped("fill_file", LimitHit.MEMORY, "/dev/shm/x", limits=LARGE_FILES),
    _stopped("fill_memory_file", LimitHit.MEMORY, limits=LARGE_FILES),
    _stopped("big_file", LimitHit.DISK),
    _stopped("fill_file", LimitHit.DISK, "big", limits=LARGE_FILES),
    _stopped("many_files", LimitHit.DISK),
    _stopped("nameless_files", LimitHit.DISK),
    _stopped("closed_folder", LimitHit.DISK),
]


def program() -> Path:
    """The attacking program, compiled on first use; as it is written, since an optimiser drops what looks useless."""
    return our_program("attacks.c", "-O0")


class Reader:
    """The reading end of a FIFO."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def read(self) -> bytes | None:
        """What comes next; b"" where all writers are gone; None where neither happens."""
        ready, _, _ = select.select([self.fd], [], [], PATIENCE_S)
        return os.read(self.fd, 1) if ready else None

    def read_to_end(self) -> bytes | None:
        """Possible only when nobody holds the FIFO open for writing; None where somebody does."""
        data = b""
        while (more := self.read()) != b"":
            if more is None:
                return None
            data += more
        return data


@contextlib.contextmanager
def writers_of(fifo: Path) -> Iterator[Reader]:
    """Make the FIFO, and hold it open for reading, so that no writer's open waits."""
    os.mkfifo(fifo)
    fifo.chmod(0o666)
    fd = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield Reader(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def listening() -> Iterator[int]:
    """A TCP port and an abstract socket of ours that a job must not reach."""
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as named:
        port: int = tcp.getsockname()[1]
        named.bind(f"\0kernelwright-test-{port}")
        named.listen()
        yield port


def _furnish(home: Path, attacker: Path) -> tuple[Path, Path]:
    """A folder to write to, one to read, and a secret beside them."""
    folder, read_only = home / "workspace", home / "read_only"
    folder.mkdir()
    read_only.mkdir()
    (read_only / "file").write_text("ours")
    shutil.copyfile(attacker, read_only / "set_user_id")
    (read_only / "set_user_id").chmod(0o6755)
    if os.geteuid() == 0:
        (read_only / "closed").write_bytes(SECRET)
        (read_only / "closed").chmod(0o640)
    (home / "secret").write_bytes(SECRET)
    (home / "secret").chmod(0o644)
    return folder, read_only


async def attack(sandbox: Sandbox, case: Case, attacker: Path, home: Path) -> str | None:
    """Run one case in folders of its own under `home`. How it got further than it may; None where it did not."""
    folder, read_only = _furnish(home, attacker)
    binds = (Bind(attacker, "/attack"), Bind(read_only, "/read_only"), Bind(folder, "/workspace", writable=True))
    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(writers_of(folder / "fifo")) if case.daemon else None
        sandbox.own(folder)
        argument = case.argument.format(secret=home / "secret", port=stack.enter_context(listening()))
        # A room with the machine's GPUs in it shows more than one without.
        job = Job(("/attack", case.name, argument), "/workspace", binds, limits=case.limits, gpu=bool(gpu_nodes()))
        second = replace(job, argv=("/attack", case.beside))
        result, *others = await asyncio.gather(
            *(sandbox.run(each) for each in ([job, second] if case.beside else [job]))
        )
        if (result.exit_code, result.limit) != (case.code, case.limit):
            return f"expected exit code {case.code}, limit {case.limit and case.limit.value}: {result}"
        if any(other.exit_code != MET for other in others):
            return f"the job beside it ended otherwise: {others}"
        if reader is not None and reader.read_to_end() is None:
            return "a process of it lives on"
    return None if result.wall_s <= result.outside_s and case.after(folder, result) else f"it got something: {result}"


async def all_attacks(sandbox: Sandbox) -> AsyncIterator[tuple[Case, str | None]]:
    """Every case, one after the other, and how it got further than it may. Without a sandbox the harmless ones alone."""
    attacker = program()
    for case in CASES:
        if sandbox.name == "none" and not case.harmless:
            continue
        with tempfile.TemporaryDirectory(dir=state_home()) as home:
            try:
                yield case, await attack(sandbox, case, attacker, Path(home))
            except InfrastructureError as error:
                yield case, str(error)
