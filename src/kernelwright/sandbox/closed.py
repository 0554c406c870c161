"""What bubblewrap and our own namespaces have in common: one room, described once in bubblewrap's words.

Layers, each of which an attack of `attacks.py` needs:
- a user id of its own (as root a user that is nobody else; as a plain user a user namespace alone), so that a uid check
  holds and the process limit counts;
- new user, pid, net, ipc, uts, mount and cgroup namespaces, no capabilities, no network;
- only system folders, compilers and the job's binds, all else of the machine absent; every mount that is not a bind of
  the job's own is read-only or a tmpfs that counts as the job's memory;
- a list of refused system calls (`seccomp.py`);
- limits held by the launcher (`launch.c`), which the job can neither signal, trace nor forge.

Process memory is watched every 20 ms instead of put into a memory cgroup: a cgroup needs a delegated tree that plain
users, containers and most clusters do not have, and two mechanisms would give two meanings of one limit.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelwright.errors import InfrastructureError
from kernelwright.sandbox import Bind, Job, JobResult, Limits, Probe
from kernelwright.sandbox.launch import Wrapping, launch, our_program
from kernelwright.sandbox.refusals import why_not_started
from kernelwright.sandbox.room import (
    CPUS,
    ETC,
    LINKED,
    NODES,
    SYSTEM,
    environment,
    gpu_nodes,
    masked_folders,
    outside_folders,
)
from kernelwright.sandbox.seccomp import seccomp_filter
from kernelwright.sandbox.user import job_uid, own

LAUNCHER_INSIDE = "/run/kernelwright/launch"
HOSTNAME = "kernelwright"
TRIAL_S = 20.0
TMPFS = ("/tmp", "/dev/shm")
DOORS_OF_PROC = ("/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs")
"""Settings; some of a namespace's own would belong to the job."""
TOLD_BY_PROC = ("/proc/kcore", "/proc/keys", "/proc/timer_list")
"""What a /proc of one's own tells of the whole machine or of its user's keys; container engines cover it as well."""
OWN_TASK_COUNT = (5, 14)
"""Since this kernel RLIMIT_NPROC counts within a user namespace; before it, over all that the user runs anywhere."""


@contextlib.contextmanager
def memory_file(content: bytes) -> Iterator[int]:
    fd = os.memfd_create("seccomp")
    try:
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def counts_own_tasks() -> bool:
    """Whether the kernel counts a user's processes in each user namespace apart."""
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    return release is not None and (int(release[1]), int(release[2])) >= OWN_TASK_COUNT


class ClosedRoom(ABC):
    """A backend that makes the room itself, from namespaces."""

    name: str

    def __init__(self) -> None:
        self._launcher = our_program("launch.c")
        self._filter = seccomp_filter()

    @abstractmethod
    def _opener(self, job: Job, binds: Sequence[Bind]) -> tuple[list[str], list[str]]:
        """The words that open a room, up to the first of what is in it; and where the sources of `binds` are then found."""

    @abstractmethod
    def _if_known(self, option: str, *values: str) -> list[str]:
        """An option that not every version has."""

    @property
    @abstractmethod
    def _what(self) -> str:
        """The backend in a sentence of `doctor`."""

    @property
    def _limits_tasks(self) -> bool:
        return counts_own_tasks()

    def inside(self, source: Path, inside: str) -> str:
        return inside

    def own(self, folder: Path) -> None:
        own(folder)

    async def run(self, job: Job) -> JobResult:
        with memory_file(self._filter or b"") as seccomp:
            wrapping = Wrapping(
                words=(*self._words(job, seccomp), LAUNCHER_INSIDE), env=environment(job),
                writable=tuple(bind.inside for bind in job.binds if bind.writable), tmpfs=TMPFS,
                limit_tasks=self._limits_tasks, pass_fds=(seccomp,), owner=job_uid(),
            )  # fmt: skip
            return await launch(job, wrapping, job.argv, job.cwd, why_not_started)

    def refusal(self) -> str | None:
        """What is said where the room does not open around /bin/true; None where it does. Waits some milliseconds."""
        with memory_file(self._filter or b"") as seccomp:
            words = [*self._words(Job(("/bin/true",), "/"), seccomp), "/bin/true"]
            try:
                done = subprocess.run(
                    words, pass_fds=(seccomp,), env={}, cwd="/", capture_output=True, text=True, timeout=TRIAL_S
                )
            except subprocess.TimeoutExpired:
                return f"no answer within {TRIAL_S:.0f} s"
        return None if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"

    async def probe(self) -> Probe:
        """Open the real room, with the machine's GPUs in it where there are any, around /bin/true."""
        job = Job(("/bin/true",), cwd="/", gpu=bool(gpu_nodes()), limits=Limits(wall_s=10.0))
        try:
            result = await self.run(job)
        except InfrastructureError as error:
            return Probe(False, error.what, error.try_)
        uid = job_uid()
        who = "jobs run in a user namespace of yours" if uid is None else f"jobs run as uid {uid}"
        filtered = "" if self._filter else f"; no list of refused system calls for {platform.machine()}"
        opened_ms = (result.outside_s - result.wall_s) * 1000
        return Probe(result.exit_code == 0, f"{self._what}, {who}, opens in {opened_ms:.0f} ms{filtered}")

    def _words(self, job: Job, seccomp: int) -> list[str]:
        binds = [Bind(self._launcher, LAUNCHER_INSIDE), *(Bind(path, str(path)) for path in outside_folders(job.gpu))]
        binds += job.binds
        words, sources = self._opener(job, binds)
        words += ["--hostname", HOSTNAME, *_system_words(), *_masks(job), *_proc()]
        words += ["--dev", "/dev", *_devices(job)]
        for folder in TMPFS:
            words += [*self._if_known("--size", str(job.limits.memory_bytes)), "--tmpfs", folder]
        for bind, source in zip(binds, sources, strict=True):
            words += ["--bind" if bind.writable else "--ro-bind", source, bind.inside]
        words += ["--remount-ro", "/dev", "--remount-ro", "/"]
        words += ["--seccomp", str(seccomp)] if self._filter else []
        return [*words, "--"]


def _system_words() -> list[str]:
    words = []
    for folder in SYSTEM:
        words += ["--ro-bind-try", folder, folder]
    for name in LINKED:
        path = Path(name)
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), name]
        elif path.exists():
            words += ["--ro-bind", name, name]
    for name in ETC:
        words += ["--ro-bind-try", name, name]
    return words


def _masks(job: Job) -> list[str]:
    return [word for folder in masked_folders(job) for word in ("--tmpfs", str(folder), "--remount-ro", str(folder))]


def _proc() -> list[str]:
    words = ["--proc", "/proc"]
    for path in DOORS_OF_PROC:
        words += ["--ro-bind-try", path, path]
    for path in TOLD_BY_PROC:
        words += ["--ro-bind", "/dev/null", path] if Path(path).exists() else []
    return words


def _devices(job: Job) -> list[str]:
    """GPU nodes and /sys for jobs that need them; for all others the cores' topology, which OpenMP asks for."""
    if not job.gpu:
        return ["--ro-bind-try", CPUS, CPUS, "--ro-bind-try", NODES, NODES]
    words = ["--ro-bind", "/sys", "/sys"]
    for node in map(str, gpu_nodes()):
        words += ["--dev-bind", node, node]
    return words
