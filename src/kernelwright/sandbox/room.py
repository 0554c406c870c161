"""What of the machine a job may see: system folders, compilers, device nodes, and the environment that finds them.

Decided by looking at the machine once per job; who may not be seen is decided by leaving it out.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from kernelwright.sandbox import Job
from kernelwright.state import state_home

SYSTEM = ("/usr", "/opt")
LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Symlinks into /usr on today's systems, folders on older ones; inside they are what they are outside."""
ETC = ("/etc/ld.so.cache", "/etc/alternatives")
"""What the loader, and compilers that are found through Debian's alternatives, need. Nothing else of /etc is there."""
CPUS, NODES = "/sys/devices/system/cpu", "/sys/devices/system/node"
NVIDIA = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
AMD = ("/dev/kfd", "/dev/dri")
DRIVER_FOLDERS = ("/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib")
"""Where containers and WSL put libcuda without telling the loader's cache."""


def gpu_nodes() -> list[Path]:
    """The GPUs' device nodes that this machine has."""
    cards = sorted(Path("/dev").glob("nvidia[0-9]*"))
    return [*cards, *(path for name in (*NVIDIA, *AMD) if (path := Path(name)).exists())]


def gpu_groups() -> set[int]:
    """Groups that a job must be in to open the nodes that are not open to all (AMD's: render and video)."""
    nodes = [entry for node in gpu_nodes() for entry in ([node] if not node.is_dir() else node.iterdir())]
    found = [node.stat() for node in nodes if not node.is_dir()]
    return {status.st_gid for status in found if not status.st_mode & stat.S_IWOTH and status.st_gid}


def _cuda_bin() -> Path | None:
    """The folder of the real nvcc: a link is followed, a script that starts it stays what it is."""
    found = shutil.which("nvcc")
    for place in ([Path(found).resolve().parent] if found else []) + [Path("/usr/local/cuda/bin").resolve()]:
        if (place.parent / "nvvm").is_dir() and (place / "nvcc").exists():
            return place
    return None


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in (*SYSTEM, *LINKED))


def masked_folders(job: Job) -> list[Path]:
    """Folders inside the system's that are none of the job's business: our state and what the job names as unseen."""
    wanted = dict.fromkeys(path.resolve() for path in (state_home(), *job.unseen))
    return [folder for folder in wanted if _is_system(folder) and folder.is_dir()]


def driver_folders() -> list[Path]:
    """Folders with libcuda that only LD_LIBRARY_PATH, or nothing, points at."""
    named = [Path(word) for word in os.environ.get("LD_LIBRARY_PATH", "").split(":") if word.startswith("/")]
    candidates = dict.fromkeys([*named, *map(Path, DRIVER_FOLDERS)])
    return [folder for folder in candidates if (folder / "libcuda.so.1").exists()]


def outside_folders(gpu: bool) -> list[Path]:
    """Folders beyond the system's that jobs need: a CUDA toolkit elsewhere, a driver's libraries elsewhere."""
    cuda = _cuda_bin()
    wanted = [cuda.parent] if cuda else []
    if gpu:
        wanted += driver_folders()
    return [folder for folder in dict.fromkeys(wanted) if not _is_system(folder)]


def environment(job: Job) -> dict[str, str]:
    """The whole environment of a job: what finds programs and libraries, a home that is thrown away, the job's own."""
    path = ["/usr/local/bin", "/usr/bin", "/bin"]
    if (cuda := _cuda_bin()) is not None:
        path.insert(0, str(cuda))
    env = {"PATH": ":".join(path), "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
    if job.gpu and (folders := driver_folders()):
        env["LD_LIBRARY_PATH"] = ":".join(map(str, folders))
    return env | job.env
