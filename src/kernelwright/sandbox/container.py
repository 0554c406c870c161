"""The sandbox for users who have an image with their toolchain: each job a container of podman, docker or apptainer.

The image gives the system: compilers, libraries, its PATH. The launcher is bound into it and is its first process, so that
limits, reports and outcomes are those of every sandbox; its descriptors, and our list of refused system calls on top of the
engine's own, it fetches from a socket (`launch.py`). Where we are killed, its control pipe closes, the launcher ends
everything, and the engine removes the container. No network, a root that cannot be written, no capabilities, no new
privileges, a user that is not root.

A container takes some tenths of a second to start, bubblewrap some thousandths.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernelwright.errors import InfrastructureError, JobFault, SandboxUnavailable
from kernelwright.sandbox import Bind, Job, JobResult, Limits, Probe
from kernelwright.sandbox.closed import TMPFS, counts_own_tasks, memory_file
from kernelwright.sandbox.engines import ENGINES, Container, remove, words
from kernelwright.sandbox.launch import HOME, Engine, Wrapping, home_folder, launch, our_program
from kernelwright.sandbox.refusals import WITHOUT
from kernelwright.sandbox.room import gpu_nodes
from kernelwright.sandbox.seccomp import seccomp_filter
from kernelwright.sandbox.user import job_uid, own

LAUNCHER_INSIDE = "/run/kernelwright/launch"
PATH = "/usr/local/cuda/bin:/opt/rocm/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where an image that names none is likely to have its compilers."""
ANSWER_S = 60.0
NO_DAEMON = ("Cannot connect to the Docker daemon", "permission denied while trying to connect", "error during connect")


def _ask(engine: str, *question: str) -> subprocess.CompletedProcess[str]:
    """Raises SandboxUnavailable where the engine cannot even answer."""
    try:
        done = subprocess.run([engine, *question], capture_output=True, text=True, timeout=ANSWER_S, cwd="/")
    except subprocess.TimeoutExpired:
        raise SandboxUnavailable(f"{engine} {question[0]} gives no answer", f"one within {ANSWER_S:.0f} s",
                                 f"{engine} info") from None  # fmt: skip
    if done.returncode != 0 and any(words in done.stderr for words in NO_DAEMON):
        raise SandboxUnavailable(f"docker: {done.stderr.strip()}", "a running daemon that you may talk to",
                                 "systemctl start docker, membership in its group, DOCKER_HOST, or podman")  # fmt: skip
    return done


def why_not_started(engine: str, said: str) -> InfrastructureError:
    """The exception for what an engine said instead of starting the launcher."""
    words = said or f"{engine} ended without a word"
    if "No space left" in said:
        return JobFault(f"a job did not start: {words}", "room on the machine's disk", "free some space and resume")
    return SandboxUnavailable(f"{engine} does not start a container here: {words}", "a container of the image",
                              f"{engine} run --rm IMAGE true, to see it alone; another --sandbox, {WITHOUT}")  # fmt: skip


class ContainerSandbox:
    """Raises SandboxUnavailable where the engine or the image is missing, or where jobs would be root in it."""

    def __init__(self, engine: str, image: str) -> None:
        if shutil.which(engine) is None:
            raise SandboxUnavailable(f"{engine} is not installed", f"the program {engine} on PATH",
                                     f"{' or '.join(other for other in ENGINES if other != engine)}, "
                                     f"--sandbox bubblewrap, {WITHOUT}")  # fmt: skip
        _require_no_root(engine)
        self._engine, self._image = engine, image
        self._id, self._image_env = _local_folder(image) if engine == "apptainer" else _inspected(engine, image)
        self._launcher = our_program("launch.c")
        self._filter = seccomp_filter()

    @property
    def name(self) -> str:
        return f"{self._engine} {self._image} {self._id}"

    def inside(self, source: Path, inside: str) -> str:
        return inside

    def own(self, folder: Path) -> None:
        own(folder)

    async def run(self, job: Job) -> JobResult:
        with home_folder() as home, memory_file(self._filter or b"") as refused:
            container = Container(
                f"kernelwright-{os.getpid()}-{secrets.token_hex(4)}", self._image,
                (Bind(self._launcher, LAUNCHER_INSIDE), Bind(home, HOME), *job.binds), job.limits, job.gpu, LAUNCHER_INSIDE,
            )  # fmt: skip
            engine = Engine(home, os.environ, refused if self._filter else None, remove(self._engine, container.name))
            wrapping = Wrapping(
                words=tuple(words(self._engine, container)), env=self._env(job),
                writable=tuple(bind.inside for bind in job.binds if bind.writable), tmpfs=TMPFS,
                limit_tasks=self._own_tasks, owner=job_uid(), engine=engine,
            )  # fmt: skip
            return await launch(job, wrapping, job.argv, job.cwd, lambda said: why_not_started(self._engine, said))

    async def probe(self) -> Probe:
        """Start a container of the image, with the machine's GPUs in it where there are any."""
        job = Job(("/bin/true",), cwd="/", gpu=bool(gpu_nodes()), limits=Limits(wall_s=10.0))
        try:
            result = await self.run(job)
        except InfrastructureError as error:
            return Probe(False, error.what, error.try_)
        filtered = "" if self._filter else f"; no list of refused system calls for {platform.machine()}"
        opened_ms = (result.outside_s - result.wall_s) * 1000
        return Probe(
            True, f"{self.name}, jobs run as uid {job_uid() or os.getuid()}, opens in {opened_ms:.0f} ms{filtered}"
        )

    @property
    def _own_tasks(self) -> bool:
        """Whether each container has a user namespace to count processes in; the others have a cgroup that does."""
        return counts_own_tasks() and (self._engine == "apptainer" or (self._engine == "podman" and job_uid() is None))

    def _env(self, job: Job) -> dict[str, str]:
        """The image's own, a home that is thrown away, and the job's; of its PATH the folders that are bound into the room,
        then the image's, since the machine's compilers are not there."""
        own_path = [part for part in job.env.get("PATH", "").split(":") if _bound(part, job.binds)]
        path = ":".join([*own_path, self._image_env.get("PATH", PATH)])
        return {**self._image_env, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", **job.env, "PATH": path}


def _bound(part: str, binds: Sequence[Bind]) -> bool:
    return any(part == bind.inside or part.startswith(f"{bind.inside}/") for bind in binds)


def _require_no_root(engine: str) -> None:
    if engine == "apptainer" and os.geteuid() == 0:
        raise SandboxUnavailable("apptainer runs a job as whoever starts it, and that is root", "a plain user",
                                 "--sandbox bubblewrap or namespaces, which give jobs a user of their own")  # fmt: skip
    if engine == "docker" and "rootless" in _ask(engine, "info", "--format", "{{.SecurityOptions}}").stdout:
        raise SandboxUnavailable("rootless docker makes you root inside", "a user that is not root",
                                 "--sandbox podman, which can keep your user id")  # fmt: skip


def _inspected(engine: str, image: str) -> tuple[str, dict[str, str]]:
    """The short id of a local image and the environment that it asks for. Nothing is pulled: what runs is what is here."""
    done = _ask(engine, "image", "inspect", image)
    if done.returncode != 0:
        raise SandboxUnavailable(f"{engine} has no image {image}: {done.stderr.strip()}", "a local image",
                                 f"{engine} pull {image}, or {engine} images for those that are here")  # fmt: skip
    found = json.loads(done.stdout)[0]
    env = dict(line.split("=", 1) for line in found["Config"].get("Env") or () if "=" in line)
    return str(found["Id"]).removeprefix("sha256:")[:12], env


def _local_folder(image: str) -> tuple[str, dict[str, str]]:
    """Apptainer's images are files or folders; a file's time says which one it was."""
    path = Path(image)
    if not path.exists():
        raise SandboxUnavailable(f"there is no image {image}", "a .sif file or a folder with a root file system",
                                 f"apptainer pull image.sif {image if '://' in image else 'docker://…'}")  # fmt: skip
    return f"of {int(path.stat().st_mtime)}", {}
