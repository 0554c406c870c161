"""The least time that a task's stated floor of bytes and operations allows on a device: faster is `suspect`.

Deliberately generous, since an honest answer must never be called suspect: data may lie in a cache several times as fast
as memory, and tensor units are faster than the plain ones. A measured limit of the device at hand may replace these.
"""

from __future__ import annotations

from kernelwright.task import Task

CACHE_FACTOR = 4.0
"""Last-level caches of current GPUs and CPUs deliver at most about this multiple of their memory's bandwidth."""
MEMORY_BYTES_PER_S = {"sm_70": 0.9e12, "sm_75": 0.7e12, "sm_80": 2.0e12, "sm_86": 1.0e12, "sm_89": 1.1e12,
                      "sm_90": 4.8e12, "sm_100": 8.0e12, "sm_120": 1.8e12, "gfx90a": 3.2e12, "gfx942": 6.0e12}  # fmt: skip
"""Vendors' datasheets, the fastest part of each architecture."""
OPERATIONS_PER_S = {"sm_70": 1.3e14, "sm_75": 1.3e14, "sm_80": 6.3e14, "sm_86": 3e14, "sm_89": 1.3e15, "sm_90": 4e15,
                    "sm_100": 2e16, "sm_120": 4e15, "gfx90a": 4e14, "gfx942": 5.3e15}  # fmt: skip
"""Vendors' datasheets, the fastest unit of the fastest part, sparsity included."""
CPU_BYTES_PER_S = 1e12
CPU_OPERATIONS_PER_S = 2e13


def fastest_possible_s(task: Task, arch: str) -> float | None:
    """Seconds for one timed unit, or None where the task states no floor or the device is unknown."""
    if task.language == "cpp":
        bandwidth, operations = CPU_BYTES_PER_S, CPU_OPERATIONS_PER_S
    elif arch.rstrip("a") in MEMORY_BYTES_PER_S or arch in MEMORY_BYTES_PER_S:
        known = arch if arch in MEMORY_BYTES_PER_S else arch.rstrip("a")
        bandwidth, operations = MEMORY_BYTES_PER_S[known], OPERATIONS_PER_S[known]
    else:
        return None
    times = [task.floor.bytes / bandwidth / CACHE_FACTOR] if task.floor.bytes else []
    times += [task.floor.flops / operations] if task.floor.flops else []
    return max(times) if times else None
