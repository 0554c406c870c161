"""The command lines of container engines: podman, docker, apptainer. What a container is stands in `container.py`.

podman and docker take the same words but for users and GPUs. Apptainer's are those of its documentation (1.1 and later).
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwright.errors import SandboxUnavailable
from kernelwright.sandbox import Bind, Limits
from kernelwright.sandbox.room import AMD, gpu_groups, gpu_nodes
from kernelwright.sandbox.user import job_uid

ENGINES = ("podman", "docker", "apptainer")
CDI = (Path("/etc/cdi"), Path("/var/run/cdi"))
"""Where a description of NVIDIA's devices for containers lies; its tool writes nvidia.yaml."""
OPEN_FILES = 4096
MOST_TASKS = 32_768
"""Of the job's user in all containers together; each container's own limit is another."""
SLACK = 64
"""Processes beyond the job's own limit, so that a job at its limit is seen beyond it and named, not only refused a fork."""


@dataclass(frozen=True)
class Container:
    """One container to run, told alike to every engine."""

    name: str
    image: str
    binds: Sequence[Bind]
    limits: Limits
    gpu: bool
    program: str


def words(engine: str, container: Container) -> list[str]:
    """The command that runs a container to its end and leaves nothing of it, up to its program."""
    return _apptainer(container) if engine == "apptainer" else _oci(engine, container)


def remove(engine: str, name: str) -> tuple[str, ...]:
    """The command that ends a container at once. Apptainer's has no name and ends with the command that runs it."""
    return ("true",) if engine == "apptainer" else (engine, "rm", "--force", name)


def _quoted(part: str) -> str:
    """One part of a mount's list, which engines read as comma-separated values."""
    return '"' + part.replace('"', '""') + '"' if set(part) & set(',"\n') else part


def _mounts(binds: Sequence[Bind], closed: str) -> list[str]:
    found = []
    for bind in binds:
        parts = ["type=bind", f"source={bind.source}", f"target={bind.inside}", *([] if bind.writable else [closed])]
        found += ["--mount", ",".join(map(_quoted, parts))]
    return found


def _oci(engine: str, container: Container) -> list[str]:
    memory = str(container.limits.memory_bytes)
    found = [engine, "run", "--rm", "--name", container.name, "--pull", "never", "--log-driver", "none"]
    found += [
        "--network",
        "none",
        "--ipc",
        "private",
        "--cgroupns",
        "private",
        "--hostname",
        "kernelwright",
        "--workdir",
        "/",
    ]
    found += ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    # Other labels would have to be written onto the user's own folders.
    found += ["--security-opt", "label=disable"]
    found += ["--tmpfs", f"/tmp:rw,exec,nosuid,nodev,mode=1777,size={memory}", "--shm-size", memory]
    found += ["--ulimit", f"nofile={OPEN_FILES}:{OPEN_FILES}", "--ulimit", f"nproc={_tasks()}"]
    found += _user(engine, container.limits)
    found += ["--read-only-tmpfs=false", "--http-proxy=false"] if engine == "podman" else []
    found += _oci_gpus(engine) if container.gpu else []
    return [*found, *_mounts(container.binds, "readonly"), "--entrypoint", container.program, container.image]


def _tasks() -> str:
    """A limit that podman may set: its own default is more than it may have on some machines."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    most = MOST_TASKS if hard == resource.RLIM_INFINITY else min(hard, MOST_TASKS)
    return f"{most}:{most}"


def _user(engine: str, limits: Limits) -> list[str]:
    """As root a user that is nobody else; rootless podman maps us to ourselves and counts our processes apart."""
    if engine == "podman" and job_uid() is None:
        return ["--userns", "keep-id", "--user", f"{os.getuid()}:{os.getgid()}"]
    uid, gid = (uid, uid) if (uid := job_uid()) is not None else (os.getuid(), os.getgid())
    return ["--user", f"{uid}:{gid}", "--pids-limit", str(limits.processes + SLACK)]


def _oci_gpus(engine: str) -> list[str]:
    nodes = [str(node) for node in gpu_nodes()]
    found = [word for node in nodes if node in AMD for word in ("--device", node)]
    found += [word for group in sorted(gpu_groups()) for word in ("--group-add", str(group))] if found else []
    if not any(node.startswith("/dev/nvidia") for node in nodes):
        return found
    if engine == "docker":
        return [*found, "--gpus", "all"]
    if not any(list(folder.glob("nvidia*")) for folder in CDI):
        raise SandboxUnavailable("podman is not told of this machine's NVIDIA devices", "a description in /etc/cdi",
                                 "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml (NVIDIA's toolkit)")  # fmt: skip
    return [*found, "--device", "nvidia.com/gpu=all"]


def _apptainer(container: Container) -> list[str]:
    found = ["apptainer", "--silent", "exec", "--userns", "--containall", "--no-home", "--cleanenv", "--no-umask"]
    found += ["--no-privs", "--drop-caps", "all", "--net", "--network", "none", "--hostname", "kernelwright"]
    found += ["--no-init", "--pwd", "/"]
    if container.gpu:
        nodes = [str(node) for node in gpu_nodes()]
        found += ["--nv"] if any(node.startswith("/dev/nvidia") for node in nodes) else []
        found += ["--rocm"] if any(node in AMD for node in nodes) else []
    return [*found, *_mounts(container.binds, "ro"), container.image, container.program]
