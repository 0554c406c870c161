"""Commands of a task as words, and the environment that builds and runs get."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from kernelwright.interpose import COMPILERS
from kernelwright.toolchain.devices import arch_number


def words(command: str, arch: str, flags: Sequence[str]) -> list[str]:
    """A command's words with its placeholders filled; a bare `{flags}` becomes one word for each flag."""
    values = {
        "jobs": str(os.cpu_count() or 1),
        "arch": arch,
        "arch_number": arch_number(arch),
        "flags": " ".join(flags),
    }
    filled: list[str] = []
    for word in shlex.split(command):
        if word == "{flags}":
            filled += flags
        else:
            filled.append(re.sub(r"\{(jobs|arch|arch_number|flags)\}", lambda m: values[m.group(1)], word))
    return filled


def tool_path() -> str:
    """PATH inside the sandbox: where this machine has its compilers and build tools."""
    return _tool_path(os.environ.get("PATH", os.defpath))


@cache
def _tool_path(path: str) -> str:
    tools = (*COMPILERS, "make", "cmake", "ninja")
    folders = [str(Path(found).parent) for tool in tools if (found := shutil.which(tool, path=path))]
    cuda = ["/usr/local/cuda/bin"] if Path("/usr/local/cuda/bin").is_dir() else []
    return ":".join(dict.fromkeys([*folders, *cuda, "/usr/local/bin", "/usr/bin", "/bin"]))


def compiler_environment(language: str) -> dict[str, str]:
    """What compilers of a task's language must be told: hipcc turns into nvcc wherever it finds one."""
    return {"HIP_PLATFORM": "amd"} if language == "hip" else {}


def visible_devices(only: int | None = None) -> dict[str, str]:
    """The user's choice of accelerators, which a job's own environment must repeat; or `only` that one of the machine's."""
    if only is not None:
        return {"CUDA_VISIBLE_DEVICES": str(only), "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "HIP_VISIBLE_DEVICES": str(only)}
    names = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
    return {name: os.environ[name] for name in names if name in os.environ}
