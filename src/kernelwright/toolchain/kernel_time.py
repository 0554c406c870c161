"""How long each CUDA kernel of a run took, by CUPTI's activity records: no counter rights, no change to the program.

A small library of ours (`kernel_time.cpp`) is loaded by the driver into the timed process and writes one file at its end.
That file is written beside the candidate's code, so it is read as untrusted: it informs, it never decides.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.errors import InfrastructureError
from kernelwright.state import native

TIMES_FILE_BYTES = 4 * 2**20
"""What is read of a file at most; thousands of kernels fit."""
_SOURCE = Path(__file__).with_name("kernel_time.cpp")
_KERNELS_READ = 10_000
_NAME_CHARS = 4096


@dataclass(frozen=True)
class KernelTime:
    """One kernel's launches in one process. Times in seconds; quantiles of single launches."""

    name: str
    """Demangled, with template arguments and parameters."""
    symbol: str
    launches: int
    total_s: float
    median_s: float
    min_s: float
    max_s: float
    p10_s: float
    p90_s: float


@dataclass(frozen=True)
class Cupti:
    """Where CUPTI lies: folders for `-I`, and the library itself."""

    include: tuple[Path, ...]
    library: Path


def find_cupti() -> Cupti:
    """CUPTI of nvcc's toolkit, of the usual places, or of NVIDIA's Python packages.

    Raises InfrastructureError naming what is missing: the header, cuda.h, or the library.
    """
    toolkits = list(_toolkits())
    found = [cupti for root in toolkits for cupti in _candidates(root)]
    header = next((folder for folder, _ in found if (folder / "cupti.h").is_file()), None)
    if header is None:
        raise _missing("CUPTI's header cupti.h")
    library = next((lib for folder, lib in found if folder == header and lib is not None), None)
    library = library or next((lib for _, lib in found if lib is not None), None)
    if library is None:
        raise _missing("CUPTI's library libcupti.so")
    driver = next((f for f in [header, *(folder for folder, _ in found)] if (f / "cuda.h").is_file()), None)
    if driver is None:
        raise _missing("the header cuda.h, which cupti.h needs,")
    return Cupti((header,) if driver == header else (header, driver), library)


def _missing(what: str) -> InfrastructureError:
    return InfrastructureError(f"{what} was not found, so there are no kernel times", "CUPTI beside nvcc's toolkit",
                               "the CUDA toolkit's package cuda-cupti-dev, or pip install nvidia-cuda-cupti")  # fmt: skip


def _toolkits() -> Iterator[Path]:
    """Roots that may hold a toolkit, nvcc's own first."""
    nvcc = nvcc_toolkit()
    if nvcc is not None:
        yield nvcc
    for name in ("CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    yield from (Path("/usr/local/cuda"), Path("/usr"))
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        yield from sorted(Path(folder).glob("cu[0-9]*"), reverse=True)
        yield from (Path(folder) / name for name in ("cuda_cupti", "cuda_runtime", "cuda_nvcc"))


def nvcc_toolkit() -> Path | None:
    """The root of the toolkit that nvcc belongs to, by its own word (`nvcc` may be a link or a wrapper)."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        return None
    try:
        done = subprocess.run(
            [nvcc, "-dryrun", "-E", "-x", "cu", os.devnull], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    top = re.search(r"^#\$ TOP=(.+?)\s*$", done.stderr, re.MULTILINE)
    return Path(top[1]).resolve() if top else None


def _candidates(root: Path) -> Iterator[tuple[Path, Path | None]]:
    """(folder of headers, library or None) pairs of a toolkit root, in its several layouts."""
    for include, libraries in (
        ("targets/x86_64-linux/include", "targets/x86_64-linux/lib"),
        ("targets/sbsa-linux/include", "targets/sbsa-linux/lib"),
        ("extras/CUPTI/include", "extras/CUPTI/lib64"),
        ("include", "lib64"),
        ("include", "lib"),
        ("include", f"lib/{os.uname().machine}-linux-gnu"),
    ):
        if (root / include).is_dir():
            versions = sorted((root / libraries).glob("libcupti.so*"), key=lambda path: (len(path.name), path.name))
            yield root / include, versions[0] if versions else None


def injection_library() -> Path:
    """The library for CUDA_INJECTION64_PATH, built on first use.

    It finds CUPTI by the absolute path it was built with, so a job must see this file and that folder
    (`find_cupti().library.resolve().parent`). Raises InfrastructureError with the reason where CUPTI or a C++ compiler
    is missing.
    """
    cupti = find_cupti()
    arguments = ["-std=c++17", "-shared", "-fPIC", "-fvisibility=hidden", *(f"-I{folder}" for folder in cupti.include),
                 str(cupti.library), f"-Wl,-rpath,{cupti.library.resolve().parent}"]  # fmt: skip
    return native(_SOURCE, ["g++", "c++", "clang++"], arguments, suffix=".so")


def environment(library: Path | str, inside_path: str) -> dict[str, str]:
    """What a job's environment needs: the library (its path as the job sees it) and the file to write."""
    return {"CUDA_INJECTION64_PATH": str(library), "KERNELWRIGHT_KERNEL_TIMES": inside_path}


def read(data: bytes) -> list[KernelTime]:
    """The kernels of a file that the library wrote, longest total first; entries that make no sense are left out.

    Never raises: the file comes from the candidate's process and may hold anything.
    """
    try:
        whole = json.loads(data[:TIMES_FILE_BYTES].decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return []
    kernels = whole.get("kernels") if isinstance(whole, dict) else None
    entries = kernels[:_KERNELS_READ] if isinstance(kernels, list) else []
    times = [time for entry in entries if isinstance(entry, dict) and (time := _entry(entry)) is not None]
    return sorted(times, key=lambda time: -time.total_s)


def _entry(entry: dict[str, Any]) -> KernelTime | None:
    name, launches = entry.get("name"), entry.get("launches")
    if not isinstance(name, str) or not name or type(launches) is not int or not 0 < launches < 2**53:
        return None
    seconds = {key: _seconds(entry.get(f"{key}_ns")) for key in ("total", "min", "p10", "median", "p90", "max")}
    known = {key: value for key, value in seconds.items() if value is not None}
    ordered = [known.get(key, -1.0) for key in ("min", "p10", "median", "p90", "max", "total")]
    if len(known) != len(seconds) or ordered != sorted(ordered):
        return None
    symbol = entry.get("symbol")
    return KernelTime(
        name=_printable(name),
        symbol=_printable(symbol if isinstance(symbol, str) else name),
        launches=launches,
        **{f"{key}_s": value for key, value in known.items()},
    )


def _printable(name: str) -> str:
    """A name that a terminal can be shown: no control characters, no halves of surrogate pairs."""
    return "".join(char if char.isprintable() else "?" for char in name[:_NAME_CHARS])


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e18:
        return None
    return value * 1e-9
