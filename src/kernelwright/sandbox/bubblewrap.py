"""The default sandbox: bubblewrap, with the launcher as process 1 of the job's own pid namespace.

Layers, each of which an attack of `tests/sandbox` needs:
- a user id of its own (as root: `stage.c` shows the job's folders, drops the id and starts bubblewrap; as a plain user:
  a user namespace alone), so that a uid check holds and the process limit counts;
- new user, pid, net, ipc, uts, mount and cgroup namespaces, no capabilities, no network;
- only system folders, compilers and the job's binds, all else of the machine absent; every mount that is not a bind of
  the job's own is read-only or a tmpfs that counts as the job's memory;
- a list of refused system calls (`seccomp.py`);
- limits held by the launcher (`launch.c`), which the job can neither signal, trace nor forge.

Process memory is watched every 20 ms instead of put into a memory cgroup: a cgroup needs a delegated tree that plain
users, containers and most clusters do not have, and two mechanisms would give two meanings of one limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelwright.errors import InfrastructureError, JobFault, SandboxUnavailable
from kernelwright.sandbox import Bind, Job, JobResult, Limits
from kernelwright.sandbox.launch import Wrapping, launch, our_program
from kernelwright.sandbox.room import (
    ETC,
    LINKED,
    SYSTEM,
    environment,
    gpu_groups,
    gpu_nodes,
    masked_folders,
    outside_folders,
)
from kernelwright.sandbox.seccomp import seccomp_filter

JOB_UID = 60_999
"""The user (and group) that jobs are when we are root. Systemd's and Debian's tables leave 60706 to 61183 to nobody, and
containers that map a single range of ids have only those below 65536."""
LAUNCHER_INSIDE = "/run/kernelwright/launch"
CPUS, NODES = "/sys/devices/system/cpu", "/sys/devices/system/node"
TMPFS = ("/tmp", "/dev/shm")
FORBIDDEN = re.compile(r"namespace|uid map|Operation not permitted")
"""What bubblewrap or stage say where the machine's settings are the reason, in all versions that were seen."""
OWN_TASK_COUNT = (5, 14)
"""Since this kernel RLIMIT_NPROC counts within a user namespace; before it, over all that the user runs anywhere."""
WITHOUT = "or pass --no-sandbox, which runs jobs with all your rights and is recorded with every result"


@dataclass(frozen=True)
class Probe:
    """Whether the sandbox works on this machine, what it is or what it said, and what to do."""

    works: bool
    detail: str
    advice: str = ""


def _advice(said: str) -> str:
    """What a user can do about words of bubblewrap's that mean that this machine forbids it."""
    apparmor = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    debian = Path("/proc/sys/kernel/unprivileged_userns_clone")
    spaces = Path("/proc/sys/user/max_user_namespaces")
    if said.startswith("stage:"):
        return f"root in this container may not mount: run as a plain user, give it CAP_SYS_ADMIN, {WITHOUT}"
    if apparmor.exists() and apparmor.read_text().strip() == "1":
        return (
            "Ubuntu's AppArmor forbids user namespaces: install an AppArmor profile that lets /usr/bin/bwrap use `userns`, "
            f"or `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, {WITHOUT}"
        )
    if debian.exists() and debian.read_text().strip() == "0":
        return f"`sudo sysctl -w kernel.unprivileged_userns_clone=1`, {WITHOUT}"
    if spaces.exists() and spaces.read_text().strip() == "0":
        return f"`sudo sysctl -w user.max_user_namespaces=10000`, {WITHOUT}"
    return f"ask whoever runs this machine (or its container runtime) to allow user namespaces, {WITHOUT}"


def why_not_started(said: str) -> InfrastructureError:
    """The exception for what bubblewrap said instead of starting the program: forbidden here, or this job was lost."""
    words = said or "bubblewrap ended without a word"
    if "No space left" in said:
        return JobFault(f"a job did not start: {words}", "room on the machine's disk", "free some space and resume")
    if FORBIDDEN.search(said):
        return SandboxUnavailable(f"the sandbox does not open here: {words}", "user namespaces", _advice(said))
    return JobFault(f"a job did not start: {words}", "bubblewrap to start the program", "kernelwright doctor")


@contextlib.contextmanager
def _memory_file(content: bytes) -> Iterator[int]:
    fd = os.memfd_create("seccomp")
    try:
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


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


class BubblewrapSandbox:
    """Raises SandboxUnavailable where bubblewrap is not installed."""

    name = "bubblewrap"

    def __init__(self) -> None:
        found = shutil.which("bwrap")
        if found is None:
            raise SandboxUnavailable("bubblewrap is not installed", "the program bwrap on PATH",
                                     f"apt-get install bubblewrap (as root), {WITHOUT}")  # fmt: skip
        self._bwrap = str(Path(found).resolve())
        self._launcher = our_program("launch.c")
        self._stage = our_program("stage.c") if os.geteuid() == 0 else None
        self._options: str | None = None
        self._filter = seccomp_filter()
        release = re.match(r"(\d+)\.(\d+)", platform.release())
        self._own_count = release is not None and (int(release[1]), int(release[2])) >= OWN_TASK_COUNT

    def inside(self, source: Path, inside: str) -> str:
        return inside

    def own(self, folder: Path) -> None:
        """Give `folder` and all below it to the job's user, where that is not us. Links are given, never followed."""
        if self._stage is None:
            return
        os.chown(folder, JOB_UID, JOB_UID, follow_symlinks=False)
        for _, folders, files, here in os.fwalk(folder):
            for name in (*folders, *files):
                os.chown(name, JOB_UID, JOB_UID, dir_fd=here, follow_symlinks=False)

    async def run(self, job: Job) -> JobResult:
        if self._options is None:
            self._options = await self._read_options()
        with _memory_file(self._filter or b"") as seccomp:
            wrapping = Wrapping(
                words=tuple(self._words(job, seccomp if self._filter else None)), env=environment(job),
                writable=tuple(bind.inside for bind in job.binds if bind.writable), tmpfs=TMPFS,
                limit_tasks=self._own_count, pass_fds=(seccomp,), owner=JOB_UID if self._stage else None,
            )  # fmt: skip
            return await launch(job, wrapping, job.argv, job.cwd, why_not_started)

    async def probe(self) -> Probe:
        """Open the real room, with the machine's GPUs in it where there are any, around /bin/true."""
        job = Job(("/bin/true",), cwd="/", gpu=bool(gpu_nodes()), limits=Limits(wall_s=10.0))
        try:
            result = await self.run(job)
        except InfrastructureError as error:
            return Probe(False, error.what, error.try_)
        who = f"jobs run as uid {JOB_UID}" if self._stage else "jobs run in a user namespace of yours"
        filtered = "" if self._filter else f"; no list of refused system calls for {platform.machine()}"
        return Probe(result.exit_code == 0, f"bubblewrap at {self._bwrap}, {who}, opens in "
                     f"{(result.outside_s - result.wall_s) * 1000:.0f} ms{filtered}")  # fmt: skip

    async def _read_options(self) -> str:
        """bubblewrap's own list: Ubuntu 22.04's and RHEL's have no --size yet (the launcher counts tmpfs all the same)."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(self._bwrap, "--help", stdout=pipe, stderr=pipe)
        return "".join(part.decode() for part in await process.communicate())

    def _words(self, job: Job, seccomp: int | None) -> list[str]:
        binds = [Bind(self._launcher, LAUNCHER_INSIDE), *(Bind(path, str(path)) for path in outside_folders(job.gpu))]
        binds += job.binds
        staged, sources = self._staged(job, binds)
        words = [*staged, self._bwrap, "--unshare-all", "--as-pid-1", "--die-with-parent", "--new-session"]
        words += ["--cap-drop", "ALL", "--hostname", "kernelwright", *self._if_known("--clearenv")]
        words += [*_system_words(), *_masks(job), "--proc", "/proc", "--dev", "/dev", *self._devices(job)]
        for folder in TMPFS:
            words += [*self._if_known("--size", str(job.limits.memory_bytes)), "--tmpfs", folder]
        for bind, source in zip(binds, sources, strict=True):
            words += ["--bind" if bind.writable else "--ro-bind", source, bind.inside]
        words += ["--remount-ro", "/dev", "--remount-ro", "/"]
        words += [] if seccomp is None else ["--seccomp", str(seccomp)]
        return [*words, "--", LAUNCHER_INSIDE]

    def _staged(self, job: Job, binds: list[Bind]) -> tuple[list[str], list[str]]:
        """The words that drop root's id, and where bubblewrap then finds the binds' sources."""
        if self._stage is None:
            return [], [str(bind.source) for bind in binds]
        words = [str(self._stage), "-u", str(JOB_UID), "-g", str(JOB_UID)]
        for group in sorted(gpu_groups()) if job.gpu else ():
            words += ["-G", str(group)]
        for bind in binds:
            words += ["-b", str(bind.source)]
        return [*words, "--"], [f"/tmp/{number}" for number in range(len(binds))]

    def _devices(self, job: Job) -> list[str]:
        """GPU nodes and /sys for jobs that need them; for all others the cores' topology, which OpenMP asks for."""
        if not job.gpu:
            return ["--ro-bind-try", CPUS, CPUS, "--ro-bind-try", NODES, NODES]
        words = ["--ro-bind", "/sys", "/sys"]
        for node in map(str, gpu_nodes()):
            words += ["--dev-bind", node, node]
        return words

    def _if_known(self, option: str, *values: str) -> list[str]:
        return [option, *values] if self._options and option in self._options else []
