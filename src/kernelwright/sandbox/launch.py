"""Start the launcher, listen to it, and turn its report into a JobResult; both backends do it here.

The parent only reads and waits: limits are the launcher's (launch.c), except the flood of output, which only the reader
of the pipes can see. It tells the launcher to stop by closing the control pipe, so a parent that is killed says the same.
A launcher that reports nothing never ran the program: that is the machine's fault and is raised.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
import tty
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwright.errors import InfrastructureError, JobFault
from kernelwright.sandbox import Job, JobResult, LimitHit
from kernelwright.state import native

GRACE_S = 15.0
"""How long beyond the job's own wall time the launcher may take to start, to kill everything and to report."""
FLOOD = 10
"""A job that prints this many times what is kept is stopped."""
REPORT_BYTES = 4096


def our_program(name: str) -> Path:
    """One of this package's C programs, compiled on first use; static where the machine can, so it needs no libraries."""
    source = Path(__file__).with_name(name)
    try:
        return native(source, ("cc", "gcc", "clang"), ("-static",))
    except InfrastructureError:
        return native(source, ("cc", "gcc", "clang"))


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
        if not self.ended.done():
            self._loop.remove_reader(self._fd)
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

    def close_childs(self) -> None:
        self.close(self.child_stdout, self.child_stderr, self.child_report, self.child_control)

    def __enter__(self) -> _Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(*self._open)


def _options(job: Job, wrapping: Wrapping, argv: Sequence[str], cwd: str, report: int, control: int) -> list[str]:
    limits = job.limits
    words = ["-r", str(report), "-k", str(control), "-w", str(max(1, round(limits.wall_s * 1000)))]
    words += ["-m", str(limits.memory_bytes), "-p", str(limits.processes), "-f", str(limits.file_bytes)]
    words += ["-d", str(limits.disk_bytes), "-C", cwd]
    words += ["-q"] if wrapping.limit_tasks else []
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
    kills = _oom_kills()
    with _Pipes(job.terminal, wrapping.owner) as pipes:
        words = [*wrapping.words, *_options(job, wrapping, argv, cwd, pipes.child_report, pipes.child_control)]
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=pipes.child_stdout, stderr=pipes.child_stderr,
            pass_fds=(pipes.child_report, pipes.child_control, *wrapping.pass_fds), env={}, cwd="/",
            start_new_session=True,
        )  # fmt: skip
        pipes.close_childs()
        keep = job.limits.output_bytes
        out, err = _Stream(pipes.stdout, keep, pipes.stop), _Stream(pipes.stderr, keep, pipes.stop)
        report = _Stream(pipes.report, REPORT_BYTES)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(job.limits.wall_s + GRACE_S):
                    await asyncio.gather(process.wait(), out.ended, err.ended, report.ended)
        finally:
            await asyncio.shield(_end(process, pipes.stop))
            for stream in (out, err, report):
                stream.close()
        outside_s = time.monotonic() - started
    return _result(job, bytes(report.kept).decode(), bytes(out.kept), bytes(err.kept), outside_s, kills, never_started)


async def _end(process: asyncio.subprocess.Process, stop: Callable[[], None]) -> None:
    """Nothing to do after a normal end; else ask the launcher to end the job, and kill it where it does not answer."""
    if process.returncode is not None:
        return
    stop()
    try:
        await asyncio.wait_for(process.wait(), GRACE_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _told_outside(words: str, job: Job) -> str:
    """A fault's words with the folder that is really meant: nobody outside knows the paths inside."""
    for bind in job.binds:
        words = re.sub(rf"(?<!\S){re.escape(bind.inside)}(?!\S)", str(bind.source).replace("\\", r"\\"), words)
    return words


def _result(job: Job, report: str, out: bytes, err: bytes, outside_s: float, kills: int,
            never_started: Callable[[str], InfrastructureError]) -> JobResult:  # fmt: skip
    lines = report.splitlines()
    said = err.decode(errors="replace").strip()
    for line in lines:
        if line.startswith("fault "):
            raise JobFault(_told_outside(line.removeprefix("fault "), job), "a machine with room for the job",
                           "free some space, or point KERNELWRIGHT_HOME at a folder on another disk")  # fmt: skip
    if "start" not in lines:
        raise never_started(said)
    ends = [line.split() for line in lines if line.startswith("end ")]
    if not ends:
        raise JobFault(f"the job's launcher was killed after {outside_s:.1f} s", "it to report the program's end",
                       "look for an out-of-memory message in the kernel's log (dmesg)")  # fmt: skip
    code, signal, wall_ns, cpu_us, rss_kb, word = ends[0][1:]
    limit = None if word == "none" else LimitHit(word)
    if (code, signal) != ("0", "0") and limit is None and _oom_kills() > kills:
        raise JobFault("the machine ran out of memory and the kernel killed a job",
                       "enough memory for the jobs that run at the same time", "fewer jobs at once")  # fmt: skip
    return JobResult(
        exit_code=int(code) if int(code) >= 0 else None, signal=int(signal) or None, stdout=out, stderr=err,
        wall_s=int(wall_ns) / 1e9, cpu_s=int(cpu_us) / 1e6, max_rss_bytes=int(rss_kb) * 1024, limit=limit,
        outside_s=outside_s,
    )  # fmt: skip
