"""The least time that a task's stated floor of bytes and operations allows on a device: faster is `suspect`.

By what was measured of the device at hand (`toolchain.peaks`), with head room; by datasheets where it cannot be measured.
Deliberately generous, since an honest answer must never be called suspect: bytes of which nothing more is said may come
from the fastest cache, and before a time is called too fast, the device is measured again. No floor is derived where a
task states none: an output file is written by the program, which may compute in the timed part less or other than that.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from kernelwright.measure import KERNEL_S, Measurement
from kernelwright.sandbox import Sandbox
from kernelwright.task import Floor, Task
from kernelwright.toolchain import peaks
from kernelwright.toolchain.peaks import NotMeasured, Peaks

HEAD_ROOM = {"cpp": 2.0, "cuda": 1.5}
"""How much faster than was ever measured is still believed. More on a CPU, whose caches and memory neighbours share: on two
virtual cores, memory gave 12 to 54 GB/s from one minute to the next."""
RESIDENT = 8
"""Of a set this many times as large as a cache, so little can stay in the cache that the head room covers it."""
NARROW = 2.0
"""Half-precision operations per single-precision one, in vector units."""
AGAIN = 2
"""How often the device is measured again before a time is called too fast."""

CACHE_FACTOR = 4.0
"""Last-level caches of current GPUs and CPUs deliver at most about this multiple of their memory's bandwidth."""
MEMORY_BYTES_PER_S = {"sm_70": 0.9e12, "sm_75": 0.7e12, "sm_80": 2.0e12, "sm_86": 1.0e12, "sm_89": 1.1e12,
                      "sm_90": 4.8e12, "sm_100": 8.0e12, "sm_120": 1.8e12, "gfx90a": 3.2e12, "gfx942": 6.0e12}  # fmt: skip
"""Vendors' datasheets, the fastest part of each architecture."""
OPERATIONS_PER_S = {"sm_70": 1.3e14, "sm_75": 1.3e14, "sm_80": 6.3e14, "sm_86": 3e14, "sm_89": 1.3e15, "sm_90": 4e15,
                    "sm_100": 2e16, "sm_120": 4e15, "gfx90a": 4e14, "gfx942": 5.3e15}  # fmt: skip
"""Vendors' datasheets, the fastest unit of the fastest part, sparsity included. On GPUs always: any kernel may use the
tensor units, which a simple program does not bring to their peak."""
CPU_BYTES_PER_S = 1e12
CPU_OPERATIONS_PER_S = 2e13


@dataclass(frozen=True)
class Limit:
    """The least seconds for one timed unit, and what that rests on, in words."""

    least_s: float
    basis: str


def fastest_possible(task: Task, arch: str) -> Limit | None:
    """None where the task states no floor or nothing is known of the device."""
    if not _stated(task.floor):
        return None
    measured = _known(task)
    times = _by_datasheet(task, arch) if measured is None else _by_measurement(task, arch, measured)
    return max(times, key=lambda limit: limit.least_s) if times else None


async def learn(
    task: Task, arch: str, time_s: float, sandbox: Sandbox, hold: Callable[[], AbstractAsyncContextManager[None]]
) -> str | None:
    """Measure the device where the task's floor needs it: once, and again where `time_s` lies below what is allowed.

    `hold` gives the device alone. Returns why datasheets stand in place of a measurement; None where they do not.
    """
    if not _stated(task.floor) or task.time.better == "higher":
        return None
    try:
        target = peaks.target(task.language)
        for _ in range(AGAIN if peaks.known(target) else 1 + AGAIN):
            limit = fastest_possible(task, arch)
            if peaks.known(target) and (limit is None or time_s >= limit.least_s):
                return None
            async with hold():
                await peaks.measure(target, sandbox)
    except NotMeasured as reason:
        return f"the physical limit is that of datasheets, {CACHE_FACTOR:g} times their bandwidth: {reason}"
    return None


def kernels_below(task: Task, arch: str, headline: Measurement) -> str | None:
    """What to say where the region's kernels together, over the whole run, took less time than the floor of one unit allows,
    and the original's did not. No proof of a lie: an honest rewrite may have the copy engine do what a kernel did."""
    limit = fastest_possible(task, arch)
    recorded = [
        (pair.base.extra[KERNEL_S], pair.candidate.extra[KERNEL_S])
        for pair in (*headline.warm_ups, *headline.pairs)
        if KERNEL_S in pair.base.extra and KERNEL_S in pair.candidate.extra
    ]
    if limit is None or not recorded:
        return None
    base_s, candidate_s = (max(times) for times in zip(*recorded, strict=True))
    if not candidate_s < limit.least_s <= base_s:
        return None
    return (
        f"the region's kernels took {candidate_s:.3g} s in the whole run, less than the {limit.least_s:.3g} s that the "
        f"task's floor allows for one unit ({limit.basis}): the work is not done in them"
    )


def _stated(floor: Floor) -> bool:
    return any((floor.bytes, floor.distinct_bytes, floor.flops))


def _known(task: Task) -> Peaks | None:
    try:
        return peaks.known(peaks.target(task.language))
    except NotMeasured:
        return None


def _by_measurement(task: Task, arch: str, measured: Peaks) -> list[Limit]:
    room, floor, found = HEAD_ROOM[task.language], task.floor, []
    fastest = max(rate for _, rate in measured.bytes_per_s)
    for stated, rate in ((floor.bytes, fastest), (floor.distinct_bytes, _rate_of(measured, floor.distinct_bytes))):
        if stated:
            basis = f"{stated:.3g} bytes at {rate / 1e9:.3g} GB/s, the most measured on {measured.target.device}"
            found.append(Limit(stated / rate / room, f"{basis}, × {room:g}"))
    if floor.flops:
        found += _by_operations(floor.flops, task, arch, measured)
    return found


def _rate_of(measured: Peaks, size: float | None) -> float:
    """The most bytes per second from sets as large as this one, or smaller by what may stay in a cache."""
    rates = [rate for bytes_, rate in measured.bytes_per_s if bytes_ >= (size or 0) / RESIDENT]
    return max(rates, default=measured.bytes_per_s[-1][1])


def _by_operations(flops: float, task: Task, arch: str, measured: Peaks) -> list[Limit]:
    if measured.flops_per_s is None or _has_matrix_units():
        return _operations_by_datasheet(flops, task, arch)
    rate, room = measured.flops_per_s, HEAD_ROOM[task.language] * NARROW
    basis = f"{flops:.3g} operations at {rate / 1e9:.3g} G/s, measured on {measured.target.device}, × {room:g}"
    return [Limit(flops / rate / room, basis)]


def _has_matrix_units() -> bool:
    """Whether the CPU has units (AMX, SME) that do far more operations than its vectors."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return True
    return any(flag.startswith("amx") or flag == "sme" for flag in flags)


def _by_datasheet(task: Task, arch: str) -> list[Limit]:
    bandwidth = CPU_BYTES_PER_S if task.language == "cpp" else MEMORY_BYTES_PER_S.get(_listed(arch))
    found = []
    for stated in (task.floor.bytes, task.floor.distinct_bytes):
        if stated and bandwidth:
            basis = f"{stated:.3g} bytes at {CACHE_FACTOR:g} × {bandwidth / 1e9:.4g} GB/s, by datasheets"
            found.append(Limit(stated / bandwidth / CACHE_FACTOR, basis))
    return found + (_operations_by_datasheet(task.floor.flops, task, arch) if task.floor.flops else [])


def _operations_by_datasheet(flops: float, task: Task, arch: str) -> list[Limit]:
    rate = CPU_OPERATIONS_PER_S if task.language == "cpp" else OPERATIONS_PER_S.get(_listed(arch))
    return [Limit(flops / rate, f"{flops:.3g} operations at {rate / 1e9:.4g} G/s, by datasheets")] if rate else []


def _listed(arch: str) -> str:
    return arch if arch in MEMORY_BYTES_PER_S else arch.rstrip("af")
