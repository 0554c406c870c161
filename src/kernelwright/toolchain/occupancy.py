"""How many warps of a CUDA kernel fit on one multiprocessor, as a function of its block size, and what sets the limit.

Theory only: registers, shared memory, warps and blocks against the limits of the CUDA C++ Programming Guide, appendix
"Compute Capabilities", tables "Technical Specifications per Compute Capability". Dynamic shared memory comes with the
launch and is not known here; it counts as an argument.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BLOCK_SIZES = (64, 128, 192, 256, 384, 512, 768, 1024)
WARP = 32
REGISTERS_PER_SM = 65536
_REGISTER_UNIT_PER_WARP = 256
_SUB_PARTITIONS = 4
"""Registers are shared out over the four schedulers of a multiprocessor, each warp within one of them."""


@dataclass(frozen=True)
class SmLimits:
    """What one multiprocessor of a compute capability holds."""

    warps: int
    blocks: int
    shared_bytes: int
    shared_unit_bytes: int
    shared_reserved_bytes: int
    """What the system takes of shared memory for each block: 1 KiB from compute capability 8.0 on."""


def _limits(threads: int, blocks: int, shared_kib: int, volta: bool = False) -> SmLimits:
    return SmLimits(threads // WARP, blocks, shared_kib * 1024, 256 if volta else 128, 0 if volta else 1024)


LIMITS = {
    "7.0": _limits(2048, 32, 96, volta=True),
    "7.2": _limits(2048, 32, 96, volta=True),
    "7.5": _limits(1024, 16, 64, volta=True),
    "8.0": _limits(2048, 32, 164),
    "8.6": _limits(1536, 16, 100),
    "8.7": _limits(1536, 16, 164),
    "8.9": _limits(1536, 24, 100),
    "9.0": _limits(2048, 32, 228),
    "10.0": _limits(2048, 32, 228),
    "10.3": _limits(2048, 32, 228),
    "11.0": _limits(1536, 24, 228),
    "12.0": _limits(1536, 24, 100),
    "12.1": _limits(1536, 24, 100),
}


@dataclass(frozen=True)
class Occupancy:
    block: int
    """Threads per block."""
    blocks_per_sm: int
    warps: int
    share: float
    """Resident warps over the multiprocessor's maximum, 0 to 1; 0 for a block that cannot be launched."""
    limited_by: str
    """warps, blocks, registers or shared memory: what stops one more block (the first of these on a tie)."""


def capability(arch: str) -> str | None:
    """`9.0` of sm_90, sm_90a or compute_90; None for an architecture that the table does not hold."""
    match = re.fullmatch(r"(?:sm|compute)_(\d+)(\d)[af]?", arch)
    known = f"{match[1]}.{match[2]}" if match else None
    return known if known in LIMITS else None


def occupancy(arch: str, registers: int, shared_bytes: int, block: int) -> Occupancy | None:
    """Occupancy of a kernel with so many registers per thread and bytes of shared memory per block; None as `capability`."""
    key = capability(arch)
    if key is None:
        return None
    limits, warps_per_block = LIMITS[key], -(-block // WARP)
    fits = {
        "warps": limits.warps // warps_per_block,
        "blocks": limits.blocks,
        "registers": _warps_by_registers(registers) // warps_per_block,
        "shared memory": _blocks_by_shared_memory(limits, shared_bytes),
    }
    factor = min(fits, key=lambda name: fits[name])
    warps = fits[factor] * warps_per_block
    return Occupancy(block, fits[factor], warps, warps / limits.warps, factor)


def _warps_by_registers(registers: int) -> int:
    per_warp = -(-max(registers, 1) * WARP // _REGISTER_UNIT_PER_WARP) * _REGISTER_UNIT_PER_WARP
    return REGISTERS_PER_SM // _SUB_PARTITIONS // per_warp * _SUB_PARTITIONS


def _blocks_by_shared_memory(limits: SmLimits, shared_bytes: int) -> int:
    unit = limits.shared_unit_bytes
    each = -(-(shared_bytes + limits.shared_reserved_bytes) // unit) * unit
    return limits.shared_bytes // each if each else limits.blocks


def table(arch: str, registers: int, shared_bytes: int) -> list[Occupancy]:
    """Occupancy for each of BLOCK_SIZES; empty for an architecture that the table does not hold."""
    rows = (occupancy(arch, registers, shared_bytes, block) for block in BLOCK_SIZES)
    return [row for row in rows if row is not None]
