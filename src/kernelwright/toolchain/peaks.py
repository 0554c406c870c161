"""How many bytes and operations per second a device does at its best, measured here by small programs of our own.

`peaks.cpp` runs on all cores, `peaks.cu` on an NVIDIA GPU, both in the sandbox. The result lies in the state folder under
the device, its driver and the compiler that made the program. What is kept is the best of all measurements there: a busy
neighbour makes one slower, nothing makes one faster than the device. What follows from it is left to `limits`.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from kernelwright.commands import visible_devices
from kernelwright.conditions import cpu_model
from kernelwright.errors import InfrastructureError
from kernelwright.sandbox import Bind, Job, Limits, Sandbox
from kernelwright.slots import available_cores
from kernelwright.state import native, state_home
from kernelwright.toolchain import devices

INSIDE = "/kw/peaks"
SCHEMA = 1
CPU_LARGEST, CORE_LARGEST, GPU_LARGEST = 2**28, 2**24, 2**31
"""Bytes of the largest working set, several times what last-level caches hold; of a CPU so much a core, if that is more."""
COMPILERS = {"cpp": ("g++", "c++", "clang++"), "cuda": ("nvcc",)}
LINE = re.compile(r"^(bytes \d+|flops) (\d[\d.]*(?:e[+-]?\d+)?)$", re.MULTILINE)


class NotMeasured(Exception):
    """Why a device cannot be measured here, in words; there are always datasheets to go by."""


@dataclass(frozen=True)
class Target:
    """What is measured, and with which compiler: the key under which the result is kept."""

    device: str
    driver: str | None
    compiler: str
    arch: str
    cores: int | None = None
    """How many cores take part; None on a GPU."""
    gpu: int | None = None
    """The index of the GPU."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps([SCHEMA, asdict(self)]).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Peaks:
    """The best that was measured of one target, and when it last was (ISO 8601, UTC)."""

    target: Target
    measured_at: str
    bytes_per_s: tuple[tuple[int, float], ...]
    """(bytes of the working set, rate), by rising size; bytes read and bytes written both count."""
    flops_per_s: float | None
    """Single-precision fused multiply-adds on all cores, two operations each; None on a GPU, whose fastest units (tensor
    cores) are not measured."""

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @property
    def age_s(self) -> float:
        return (datetime.now(UTC) - datetime.fromisoformat(self.measured_at)).total_seconds()

    @property
    def summary(self) -> str:
        """Rates and age for a person."""
        fastest, (size, last) = max(rate for _, rate in self.bytes_per_s), self.bytes_per_s[-1]
        flops = f", {self.flops_per_s / 1e9:.3g} G single-precision operations/s" if self.flops_per_s else ""
        rates = (
            f"{fastest / 1e9:.4g} GB/s from the fastest cache, {last / 1e9:.4g} GB/s from {size / 2**20:.0f} MiB{flops}"
        )
        return f"{rates}; last measured {_since(self.age_s)}"

    def best_of(self, other: Peaks) -> Peaks:
        """The faster of both, size by size, as of this one's time."""
        earlier = dict(other.bytes_per_s)
        rates = tuple((size, max(rate, earlier.get(size, 0.0))) for size, rate in self.bytes_per_s)
        flops = max((f for f in (self.flops_per_s, other.flops_per_s) if f is not None), default=None)
        return replace(self, bytes_per_s=rates, flops_per_s=flops)


def _since(age_s: float) -> str:
    for unit, size in (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if age_s >= 2 * size:
            return f"{age_s / size:.0f} {unit} ago"
    return "just now"


@cache
def target(language: str) -> Target:
    """The device that runs of a language's tasks use. Raises NotMeasured where there is none, or no compiler for it."""
    if language not in COMPILERS:
        raise NotMeasured(f"there is no measuring program for {language}")
    compiler = next((name for name in COMPILERS[language] if shutil.which(name)), None)
    if compiler is None:
        raise NotMeasured(f"{COMPILERS[language][0]} is not installed")
    if language == "cpp":
        model = cpu_model() or platform.processor() or platform.machine()
        return Target(model, None, _version(compiler), "native", len(available_cores()))
    gpu = next(iter(devices.visible_gpus("nvidia")), None)
    if gpu is None or gpu.arch is None:
        raise NotMeasured("nvidia-smi lists no GPU")
    return Target(gpu.name, devices.nvidia_driver(), _version(compiler), gpu.arch, gpu=gpu.index)


def _version(compiler: str) -> str:
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, errors="replace", check=False)
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return f"{compiler}: " + next((line for line in lines if "release" in line), lines[0] if lines else "unknown")


def _file(of: Target) -> Path:
    return state_home() / "peaks" / f"{of.digest}.json"


def known(of: Target) -> Peaks | None:
    """What was measured before; None where nothing was, or where the file cannot be read as such."""
    try:
        found = json.loads(_file(of).read_text(encoding="utf-8"))
        rates = tuple((int(size), float(rate)) for size, rate in found["bytes_per_s"])
        flops = found["flops_per_s"]
        datetime.fromisoformat(found["measured_at"])
        return Peaks(of, found["measured_at"], rates, None if flops is None else float(flops)) if rates else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def measure(of: Target, sandbox: Sandbox) -> Peaks:
    """Measure now (some seconds; the caller holds the device) and keep the best. Raises NotMeasured with the reason."""
    program = _program(of)
    largest = max(CPU_LARGEST, CORE_LARGEST * of.cores) if of.cores else GPU_LARGEST
    sizes = [2**power for power in range(14 if of.cores else 20, largest.bit_length())]
    words = [str(of.cores), *map(str, sizes)] if of.cores else [*map(str, sizes)]
    job = Job(
        (INSIDE, *words), "/", (Bind(program, INSIDE),), visible_devices(), Limits(wall_s=120.0), gpu=of.cores is None,
        cpus=available_cores() if of.cores else (),
    )  # fmt: skip
    result = await sandbox.run(job)
    if result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip()[-200:]
        raise NotMeasured(f"the measuring program failed: {said or result.limit or result.signal or result.exit_code}")
    found = _read(of, result.stdout.decode(errors="replace"))
    earlier = known(of)
    found = found.best_of(earlier) if earlier else found
    _keep(found)
    return found


def _program(of: Target) -> Path:
    language = "cpp" if of.cores else "cuda"
    source = Path(__file__).with_name("peaks.cpp" if of.cores else "peaks.cu")
    # Its name holds the key: where machines share a state folder, each needs a program for its own CPU.
    own = [f"-DKW_{of.digest}"]
    arguments = ["-O3", "-march=native", "-pthread", *own] if of.cores else [f"-arch={of.arch}", *own]
    try:
        return native(source, COMPILERS[language], arguments)
    except InfrastructureError as error:
        raise NotMeasured(error.what) from None


def _read(of: Target, printed: str) -> Peaks:
    rates, flops = [], None
    for name, value in LINE.findall(printed):
        if name == "flops":
            flops = float(value)
        elif float(value) > 0:
            rates.append((int(name.removeprefix("bytes ")), float(value)))
    if not rates:
        raise NotMeasured("the measuring program printed no rate")
    return Peaks(of, datetime.now(UTC).isoformat(timespec="seconds"), tuple(sorted(rates)), flops)


def _keep(found: Peaks) -> None:
    file = _file(found.target)
    file.parent.mkdir(exist_ok=True)
    descriptor, scratch = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(json.dumps(found.to_json()) + "\n")
    Path(scratch).replace(file)
