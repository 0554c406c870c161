"""What hipcc says of a HIP kernel for AMD devices: registers, scratch, LDS, occupancy, its assembly and instruction mix.

The recorded command is replayed for one architecture, kept to its device half. The compiler's own count of waves per SIMD
stands for occupancy: it knows the architecture's limits, and assumes the largest block it may.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kernelwright.sandbox import JobResult
from kernelwright.toolchain import CompileCommand, Exec, Report
from kernelwright.toolchain.device_code import DeviceFunction, mix_amdgcn, parse_amdgcn
from kernelwright.toolchain.replay import compile_arguments, cut, failure, sources_to_try, within
from kernelwright.toolchain.symbols import demangle, is_named

_KERNELS_SHOWN = 4
_SOURCES_TRIED = 4


@dataclass(frozen=True)
class Resources:
    """What the compiler gave one kernel: registers per thread (vector) and per wave (scalar), bytes."""

    vector_registers: int
    scalar_registers: int
    scratch_bytes: int
    """Per thread: spilled registers and arrays that do not fit into registers."""
    lds_bytes: int
    """Static shared memory per block."""
    waves_per_simd: int


async def report(command: CompileCommand, file: str, lines: tuple[int, int], kernel_names: Sequence[str], exec_: Exec,
                 arch: str, budget_chars: int = 6000) -> Report:  # fmt: skip
    """Resources, waves, instruction mix, loops and notes for the kernels named, or for all where none is named.

    `file` is relative to the repository; `arch` as in gfx90a. A command that does not compile gives a report that says so.
    """
    done: JobResult | None = None
    for source in sources_to_try(command, file)[:_SOURCES_TRIED]:
        done = await exec_(_argv(command, source, arch), command.cwd)
        text = done.stdout.decode(errors="replace")
        resources = parse_resources(text) if done.exit_code == 0 else {}
        symbols = [symbol for symbol in resources if not kernel_names or is_named(symbol, kernel_names)]
        if symbols:
            readable = await demangle(symbols, command.cwd, exec_)
            return _describe(resources, parse_amdgcn(text), readable, arch, budget_chars)
    if done is None or done.exit_code != 0:
        return failure(command, done) if done else _nothing(f"The recorded command compiles no source: {command.argv}")
    return _nothing(f"{file} lines {lines[0]} to {lines[1]}: hipcc compiled none of the kernels "
                    f"{', '.join(kernel_names) or '(any)'} for {arch}.")  # fmt: skip


def _nothing(text: str) -> Report:
    return Report(text, {"kernels": []})


def _argv(command: CompileCommand, source: str, arch: str) -> list[str]:
    kept = [word for word in compile_arguments(command, source)
            if not word.startswith(("--offload-arch", "--amdgpu-target", "--cuda-", "--hip-link", "-fgpu-rdc"))]  # fmt: skip
    # hipcc turns into nvcc wherever it finds one, unless it is told
    return ["env", "HIP_PLATFORM=amd", command.argv[0], *kept, f"--offload-arch={arch}", "-w", "-S", "--cuda-device-only",
            "-o", "-", source]  # fmt: skip


def parse_resources(text: str) -> dict[str, Resources]:
    """The comments that clang leaves after each kernel, by symbol."""
    found = {}
    for block in re.split(r"^[ \t]*\.amdhsa_kernel (?=\S)", text, flags=re.MULTILINE)[1:]:
        symbol = block.split(None, 1)[0]
        numbers = [_first(block, name) for name in ("NumVgprs", "NumSgprs", "ScratchSize", "LDSByteSize", "Occupancy")]
        known = [number for number in numbers if number is not None]
        if len(known) == len(numbers):
            found[symbol] = Resources(*known)
    return found


def _first(text: str, name: str) -> int | None:
    match = re.search(rf"^; {name}: (\d{{1,9}})\b", text, re.MULTILINE)
    return int(match[1]) if match else None


def _describe(resources: dict[str, Resources], code: dict[str, DeviceFunction], readable: dict[str, str], arch: str,
              budget_chars: int) -> Report:  # fmt: skip
    kernels = [_kernel(resources[symbol], code.get(symbol), symbol, name) for symbol, name in readable.items()]
    shown = kernels[:_KERNELS_SHOWN]
    text = "\n\n".join(
        _text(kernel, code.get(kernel["symbol"]), arch, (budget_chars - 100) // len(shown)) for kernel in shown
    )
    if len(kernels) > len(shown):
        text += f"\n\n[{len(kernels) - len(shown)} further kernels or template instances left out]"
    return Report(text, {"arch": arch, "kernels": kernels})


def _kernel(resources: Resources, code: DeviceFunction | None, symbol: str, name: str) -> dict[str, Any]:
    counts = mix_amdgcn(code.instructions) if code else {}
    return {
        "name": name,
        "symbol": symbol,
        "resources": asdict(resources),
        "instructions": counts,
        "notes": _notes(resources, counts),
        "assembly": "\n".join(code.listing()) if code else None,
    }


def _notes(resources: Resources, counts: dict[str, int]) -> list[str]:
    found = []
    if resources.scratch_bytes:
        found.append(f"{resources.scratch_bytes} bytes of scratch per thread: spilled registers, or an array indexed by "
                     "values unknown at compile time")  # fmt: skip
    if counts.get("float_to_double"):
        found.append(f"{counts['float_to_double']} values converted from float to double: a literal without f, or a double "
                     "function, in float code")  # fmt: skip
    return found


def _text(kernel: dict[str, Any], code: DeviceFunction | None, arch: str, budget_chars: int) -> str:
    one = kernel["resources"]
    inner = [loop for loop in code.loops() if loop.innermost] if code else []
    inner.sort(key=lambda loop: loop.first - loop.last)
    sections = [
        f"Kernel {kernel['name']} ({arch})\nvector registers {one['vector_registers']}, scalar registers "
        f"{one['scalar_registers']}, scratch {one['scratch_bytes']} bytes per thread, static LDS {one['lds_bytes']} bytes "
        f"per block, waves per SIMD {one['waves_per_simd']}",
        "Instructions: " + ", ".join(f"{n} {what}" for what, n in kernel["instructions"].items()),
        *(["Notes:\n" + "\n".join(f"  - {note}" for note in kernel["notes"])] if kernel["notes"] else []),
        *(cut("\n".join([f"An innermost loop ({loop.last - loop.first + 1} instructions):",
                         *(code.listing(loop.first, loop.last) if code else [])]), 1800) for loop in inner[:2]),
        *([f"Assembly:\n{kernel['assembly']}"] if kernel["assembly"] else []),
    ]  # fmt: skip
    return within(sections, budget_chars)
