"""Start the launcher, listen to it, and turn its report into a JobResult; all backends do it here.

The parent only reads and waits: limits are the launcher's (launch.c), except the flood of output, which only the reader
of the pipes can see. It tells the launcher to stop by closing the control pipe, so a parent that is killed says the same.
A launcher that reports nothing never ran the program: that is the machine's fault and is raised.

A container engine passes no descriptors on, and its daemon may be another process altogether. There the launcher fetches
them: from a socket in a folder that the container sees, which listens once, before the job runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import time
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwright.errors import InfrastructureError, JobFault, JobLost
from kernelwright.sandbox import Job, JobResult, LimitHit
from kernelwright.sandbox.user import own
from kernelwright.state import native, scratch_folder, state_home

GRACE_S = 15.0
"""How long beyond the job's own wall time the launcher may take to start, to kill everything and to report."""
FLOOD = 10
"""A job that prints this many times what is kept is stopped."""
REPORT_BYTES = 4096
KILLED = (-9, 128 + 9)
"""How a sandbox ends that was killed itself, or whose first process was."""
SOCKET = "socket"
HOME = "/run/kernelwright/home"
"""Where a container sees the folder with the socket."""


def our_program(name: str, *arguments: str) -> Path:
    """One of this package's C programs, compiled on first use; static where the machine can, so it needs no libraries."""
    source = Path(__file__).with_name(name)
    try:
        return native(source, ("cc", "gcc", "clang"), ("-static", *arguments))
    except InfrastructureError:
        return native(source, ("cc", "gcc", "clang"), arguments)


@dataclass(frozen=True)
class Wrapping:
    """How a backend runs the launcher: words before it, and what the launcher is told about the room it is in."""

    words: tuple[str, ...]
    """The command, up to and including the launcher's path."""
    env: dict[str, str]
    writable: tuple[str, ...]
    """The writable folders, as the launcher sees them."""
    tmpfs: tuple[str, ...] = ()
    limit_tasks: bool = False
    pass_fds: tuple[int, ...] = ()
    owner: int | None = None
    """The user id that may reopen /dev/stdout, where it is not ours."""
    engine: Engine | None = None


@dataclass(frozen=True)
class Engine:
    """What a container engine is run with, beside a launcher that fetches its descriptors."""

    home: Path
    """The folder that is shown inside at HOME."""
    env: Mapping[str, str]
    """The engine's own environment."""
    refused: int | None
    """A descriptor with the list of refused system calls."""
    remove: tuple[str, ...] = ()
    """The command that ends the container where the engine does not answer."""


class _Stream:
    """Reads a descriptor to its end beside everything else, keeps its first bytes, and calls `flooded` when it must."""

    def __init__(self, fd: int, keep: int, flooded: Callable[[], None] | None = None) -> None:
        self.kept = bytearray()
        self._fd, self._keep, self._seen, self._flooded = fd, keep, 0, flooded
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return
        except OSError:  # a terminal whose other side is gone says EIO
            data = b""
        if not data:
            self.close()
            return
        self._seen += len(data)
        self.kept += data[: max(0, self._keep - len(self.kept))]
        if self._flooded and self._seen > FLOOD * self._keep:
            self._flooded()

    def close(self) -> None:
        """Before the descriptor is closed, also where whoever waited was cancelled: a number that the event loop still
        knows would be taken for the next job's."""
        self._loop.remove_reader(self._fd)
        if not self.ended.done():
            self.ended.set_result(None)


class _Pipes:
    """The job's four channels. What the child gets is closed here once it has it."""

    def __init__(self, terminal: bool, owner: int | None) -> None:
        self._open: set[int] = set()
        self.stdout, self.child_stdout = self._pair(os.openpty() if terminal else os.pipe())
        if terminal:
            tty.setraw(self.child_stdout)
        self.stderr, self.child_stderr = self._pair(os.pipe())
        self.report, self.child_report = self._pair(os.pipe())
        self.child_control, self.control = self._pair(os.pipe())
        self.engine, self.child_engine = self._pair(os.pipe())
        if owner is not None:
            os.fchown(self.child_stdout, owner, -1)
            os.fchown(self.child_stderr, owner, -1)

    def _pair(self, fds: tuple[int, int]) -> tuple[int, int]:
        self._open |= set(fds)
        return fds

    def close(self, *fds: int) -> None:
        for fd in self._open & set(fds):
            os.close(fd)
            self._open.discard(fd)

    def stop(self) -> None:
        """Tell the launcher to end the job."""
        self.close(self.control)

    @property
    def childs(self) -> tuple[int, ...]:
        """In the launcher's order."""
        return self.child_stdout, self.child_stderr, self.child_report, self.child_control

    def close_childs(self) -> None:
        self.close(*self.childs, self.child_engine)

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(*self._open)


def _options(job: Job, wrapping: Wrapping, argv: Sequence[str], cwd: str, pipes: _Pipes) -> list[str]:
    limits = job.limits
    words = ["-r", str(pipes.child_report), "-k", str(pipes.child_control)]
    if wrapping.engine is not None:
        words = ["-s", f"{HOME}/{SOCKET}"]
    words += ["-w", str(max(1, round(limits.wall_s * 1000)))]
    words += ["-m", str(limits.memory_bytes), "-p", str(limits.processes), "-f", str(limits.file_bytes)]
    words += ["-d", str(limits.disk_bytes), "-C", cwd]
    words += ["-q"] if wrapping.limit_tasks else ["-Q"] if wrapping.owner is not None else []
    words += ["-c", ",".join(map(str, job.cpus))] if job.cpus else []
    for flag, values in (("-t", wrapping.tmpfs), ("-o", wrapping.writable)):
        for value in values:
            words += [flag, value]
    for name, value in wrapping.env.items():
        words += ["-e", f"{name}={value}"]
    return [*words, "--", *argv]


def _oom_kills() -> int:
    for line in Path("/proc/vmstat").read_text().splitlines():
        if line.startswith("oom_kill "):
            return int(line.split()[1])
    return 0


async def launch(job: Job, wrapping: Wrapping, argv: Sequence[str], cwd: str,
                 never_started: Callable[[str], InfrastructureError]) -> JobResult:  # fmt: skip
    """Run one job to its end. `never_started` turns the words of a room that did not open into an exception."""
    kills, engine = _oom_kills(), wrapping.engine
    with _Pipes(job.terminal, wrapping.owner) as pipes, contextlib.ExitStack() as stack:
        words = [*wrapping.words, *_options(job, wrapping, argv, cwd, pipes)]
        listener = stack.enter_context(_listening(engine.home)) if engine else None
        keep = job.limits.output_bytes
        started = time.monotonic()
        starting = asyncio.ensure_future(_start(words, wrapping, pipes))
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _end(await starting, pipes.stop, engine)
            raise
        out, err = _Stream(pipes.stdout, keep, pipes.stop), _Stream(pipes.stderr, keep, pipes.stop)
        report, told = _Stream(pipes.report, REPORT_BYTES), _Stream(pipes.engine, REPORT_BYTES)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(job.limits.wall_s + GRACE_S):
                    if engine and listener:
                        await _hand_over(listener, process, pipes.childs, engine.refused)
                    pipes.close_childs()
                    await asyncio.gather(process.wait(), out.ended, err.ended, report.ended)
        finally:
            await asyncio.shield(_end(process, pipes.stop, engine))
            for stream in (out, err, report, told):
                stream.close()
        outside_s = time.monotonic() - started
    said = bytes(told.kept if engine else err.kept).decode(errors="replace").strip()
    if process.returncode in KILLED and not report.kept:
        raise JobLost("a job's sandbox was killed before the program started", "it to start the program",
                      "look for an out-of-memory message in the kernel's log (dmesg)")  # fmt: skip
    end = _Ended(bytes(report.kept).decode(errors="replace").splitlines(), said, outside_s, kills)
    return _result(job, end, bytes(out.kept), bytes(err.kept), never_started)


async def _start(words: Sequence[str], wrapping: Wrapping, pipes: _Pipes) -> asyncio.subprocess.Process:
    null = asyncio.subprocess.DEVNULL
    if wrapping.engine is not None:
        return await asyncio.create_subprocess_exec(
            *words, stdin=null, stdout=null, stderr=pipes.child_engine, env=wrapping.engine.env, cwd="/",
            start_new_session=True,
        )  # fmt: skip
    return await asyncio.create_subprocess_exec(
        *words, stdin=null, stdout=pipes.child_stdout, stderr=pipes.child_stderr, env={}, cwd="/",
        pass_fds=(pipes.child_report, pipes.child_control, *wrapping.pass_fds), start_new_session=True,
    )  # fmt: skip


@contextlib.contextmanager
def home_folder() -> Iterator[Path]:
    """A folder for one socket. Where we are killed, the next sweep of the work folders takes it away."""
    work = state_home() / "work"
    work.mkdir(exist_ok=True)
    with scratch_folder(work) as folder:
        folder.chmod(0o700)
        own(folder)  # nobody but the launcher may ask
        yield folder


@contextlib.contextmanager
def _listening(home: Path) -> Iterator[socket.socket]:
    """Bound through a descriptor of its folder, since a socket's path may have 107 bytes alone."""
    with socket.socket(socket.AF_UNIX) as listener:
        folder = os.open(home, os.O_PATH | os.O_DIRECTORY)
        try:
            listener.bind(f"/proc/self/fd/{folder}/{SOCKET}")
        finally:
            os.close(folder)
        (home / SOCKET).chmod(0o666)
        listener.listen(1)
        listener.setblocking(False)
        yield listener


async def _hand_over(
    listener: socket.socket, process: asyncio.subprocess.Process, fds: Sequence[int], refused: int | None
) -> None:
    """Wait for the launcher, give it its descriptors, and be gone: the job finds nobody there. Ends as well where the engine
    does before any launcher came."""
    loop = asyncio.get_running_loop()
    came, ended = asyncio.ensure_future(loop.sock_accept(listener)), asyncio.ensure_future(process.wait())
    try:
        await asyncio.wait({came, ended}, return_when=asyncio.FIRST_COMPLETED)
        if came.done():
            connection = came.result()[0]
            with connection:
                socket.send_fds(connection, [b"k"], [*fds, *([] if refused is None else [refused])])
    finally:
        came.cancel()
        ended.cancel()
        listener.close()


async def _end(process: asyncio.subprocess.Process, stop: Callable[[], None], engine: Engine | None) -> None:
    """Nothing to do after a normal end; else ask the launcher to end the job, and kill it where it does not answer."""
    if process.returncode is not None:
        return
    stop()
    try:
        await asyncio.wait_for(process.wait(), GRACE_S)
    except TimeoutError:
        if engine is not None:
            remover = await asyncio.create_subprocess_exec(
                *engine.remove, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL, env=engine.env,
            )  # fmt: skip
            await remover.wait()
        process.kill()
        await process.wait()


def _told_outside(words: str, job: Job) -> str:
    """A fault's words with the folder that is really meant: nobody outside knows the paths inside."""
    for bind in job.binds:
        words = re.sub(rf"(?<!\S){re.escape(bind.inside)}(?!\S)", str(bind.source).replace("\\", r"\\"), words)
    return words


@dataclass(frozen=True)
class _Ended:
    """What is known at a launcher's end."""

    report: Sequence[str]
    said: str
    """By whoever was to start it."""
    outside_s: float
    kills: int
    """How often the kernel had killed for want of memory before it started."""


def _result(job: Job, end: _Ended, out: bytes, err: bytes,
            never_started: Callable[[str], InfrastructureError]) -> JobResult:  # fmt: skip
    lines, outside_s = end.report, end.outside_s
    for line in lines:
        if line.startswith("fault "):
            raise JobFault(_told_outside(line.removeprefix("fault "), job), "a machine with room for the job",
                           "free some space, or point KERNELWRIGHT_HOME at a folder on another disk")  # fmt: skip
    if "start" not in lines:
        raise never_started(end.said)
    ends = [line.split() for line in lines if line.startswith("end ")]
    if not ends:
        raise JobLost(f"the job's launcher was killed after {outside_s:.1f} s", "it to report the program's end",
                       "look for an out-of-memory message in the kernel's log (dmesg)")  # fmt: skip
    code, signal, wall_ns, cpu_us, rss_kb, word = ends[0][1:]
    limit = None if word == "none" else LimitHit(word)
    if (code, signal) != ("0", "0") and limit is None and _oom_kills() > end.kills:
        raise JobLost("the machine ran out of memory and the kernel killed a job",
                       "enough memory for the jobs that run at the same time", "fewer jobs at once")  # fmt: skip
    return JobResult(
        exit_code=int(code) if int(code) >= 0 else None, signal=int(signal) or None, stdout=out, stderr=err,
        wall_s=int(wall_ns) / 1e9, cpu_s=int(cpu_us) / 1e6, max_rss_bytes=int(rss_kb) * 1024, limit=limit,
        outside_s=outside_s,
    )  # fmt: skip
