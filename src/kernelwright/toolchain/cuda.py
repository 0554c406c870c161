"""What nvcc says of a CUDA kernel: registers, spills, memory, occupancy, its PTX and SASS, and what stands out in them.

The recorded command is replayed once for one architecture, kept to its device half. SASS needs nvdisasm (cuobjdump calls
it too), which some toolkits leave out; then the report says so in one line and reads PTX instead. Nothing is run on a device.
"""

from __future__ import annotations

import importlib.util
import posixpath
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kernelwright.sandbox import JobResult
from kernelwright.toolchain import CompileCommand, Exec, Report
from kernelwright.toolchain.device_code import DeviceFunction, mix_ptx, mix_sass, parse_ptx, parse_sass
from kernelwright.toolchain.occupancy import table
from kernelwright.toolchain.replay import compile_arguments, cut, failure, sources_to_try, unique, within
from kernelwright.toolchain.symbols import demangle, is_named

_SOURCES_TRIED = 4
_KERNELS_SHOWN = 4
_SECTION = "@kernelwright section "
_SCRIPT = f"""
at=$(mktemp -d) || exit 1
trap 'rm -rf "$at"' EXIT
tools=$1; shift
"$@" -cubin -o "$at/kernel.cubin" -keep -keep-dir "$at" || exit 1
echo '{_SECTION}ptx'; cat "$at"/*.ptx
found=$(command -v nvdisasm)
for folder in $tools; do [ -z "$found" ] && [ -x "$folder/nvdisasm" ] && found="$folder/nvdisasm"; done
if [ -n "$found" ]; then echo '{_SECTION}sass'; "$found" -c "$at/kernel.cubin"; fi
exit 0
"""
_ARCH_WITH_VALUE = {"-arch", "-code", "-gencode", "--gpu-architecture", "--gpu-code", "--generate-code"}
_ARCH_JOINED = re.compile(r"(-arch|-code|-gencode|--gpu-architecture|--gpu-code|--generate-code)=.*")
NO_SASS = "No SASS: nvdisasm is not installed beside nvcc (it comes with the full CUDA toolkit)."


@dataclass(frozen=True)
class Resources:
    """What ptxas gave one kernel. Bytes; registers and stack per thread, shared memory (static) per block."""

    registers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int
    constant_bytes: int | None
    """None where this version of ptxas does not say."""
    barriers: int


@dataclass(frozen=True)
class _Compiled:
    resources: dict[str, Resources]
    ptx: dict[str, DeviceFunction]
    sass: dict[str, DeviceFunction] | None
    """None where there is no disassembler."""


async def report(command: CompileCommand, file: str, lines: tuple[int, int], kernel_names: Sequence[str], exec_: Exec,
                 arch: str, budget_chars: int = 6000) -> Report:  # fmt: skip
    """Resources, occupancy, instruction mix, loops and notes for the kernels named, or for all where none is named.

    `file` is relative to the repository; `arch` as in sm_90. A command that does not compile gives a report that says so.
    """
    done: JobResult | None = None
    names: list[str] = []
    for source in sources_to_try(command, file)[:_SOURCES_TRIED]:
        done = await exec_(_argv(command, source, arch), command.cwd)
        if done.exit_code != 0:
            continue
        compiled = _read(done)
        names += compiled.resources
        symbols = [s for s in compiled.resources if not kernel_names or is_named(s, kernel_names)]
        if symbols:
            readable = await demangle(symbols, command.cwd, exec_)
            return _describe(compiled, readable, arch, budget_chars)
    if done is None or (done.exit_code != 0 and not names):
        return failure(command, done) if done else _nothing(f"The recorded command compiles no source: {command.argv}")
    wanted = f"none of {', '.join(kernel_names)}" if kernel_names else "no kernel"
    readable = await demangle(names, command.cwd, exec_)
    return _nothing(f"{file} lines {lines[0]} to {lines[1]}: nvcc compiled {wanted} for {arch}. Kernels in this unit: "
                    f"{', '.join(readable.values()) or 'none'}. A template without a launch is not compiled.")  # fmt: skip


def _nothing(text: str) -> Report:
    return Report(text, {"kernels": []})


def _argv(command: CompileCommand, source: str, arch: str) -> list[str]:
    """One `sh -c` call: compile, then disassemble what was compiled, since nothing outlives a call."""
    folders = [posixpath.dirname(command.argv[0]), *packaged_disassemblers()]
    nvcc = [command.argv[0], *device_arguments(command, source), f"-arch={arch}", "-w", "-Xptxas", "-v", source]
    return ["sh", "-c", _SCRIPT, "sh", " ".join(folder for folder in folders if folder and " " not in folder), *nvcc]


def device_arguments(command: CompileCommand, source: str) -> list[str]:
    """The recorded arguments without architectures; separate compilation (-dc) stays separate compilation."""
    kept: list[str] = []
    words = iter(compile_arguments(command, source))
    for word in words:
        if word in _ARCH_WITH_VALUE:
            next(words, None)
        elif not _ARCH_JOINED.fullmatch(word):
            kept.append(word)
    separate = {"-dc", "--device-c", "-dw", "--device-w"} & set(command.argv)
    return [*kept, *(["-rdc=true"] if separate else [])]


def packaged_disassemblers() -> list[str]:
    """Folders of an nvdisasm that came with a Python package (NVIDIA's own, or Triton)."""
    found = []
    for package, inside in (("nvidia", "*/bin"), ("triton", "backends/nvidia/bin")):
        spec = importlib.util.find_spec(package)
        for root in (spec.submodule_search_locations or []) if spec else []:
            found += [str(tool.parent) for tool in Path(root).glob(f"{inside}/nvdisasm")]
    return unique(found)


def _read(done: JobResult) -> _Compiled:
    parts = re.split(rf"^{_SECTION}(\w+)\n", done.stdout.decode(errors="replace"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    sass = parse_sass(sections["sass"]) if "sass" in sections else None
    return _Compiled(
        parse_ptxas(done.stderr.decode(errors="replace")), parse_ptx(sections.get("ptx", "")), sass or None
    )


def parse_ptxas(text: str) -> dict[str, Resources]:
    """What `ptxas -v` printed, by kernel symbol."""
    found = {}
    for block in re.split(r"Compiling entry function ", text)[1:]:
        symbol = re.match(r"'([^']+)'", block)
        if symbol and (registers := _first(block, r"Used (\d{1,9}) registers")) is not None:
            found[symbol[1]] = Resources(
                registers=registers,
                stack_bytes=_first(block, r"(?<!\d)(\d{1,9}) bytes stack frame") or 0,
                spill_store_bytes=_first(block, r"(?<!\d)(\d{1,9}) bytes spill stores") or 0,
                spill_load_bytes=_first(block, r"(?<!\d)(\d{1,9}) bytes spill loads") or 0,
                shared_bytes=_first(block, r"(?<!\d)(\d{1,9}) bytes smem") or 0,
                constant_bytes=_first(block, r"(?<!\d)(\d{1,9}) bytes cmem\[0\]"),
                barriers=_first(block, r"used (\d{1,9}) barriers") or 0,
            )
    return found


def _first(text: str, pattern: str) -> int | None:
    match = re.search(pattern, text)
    return int(match[1]) if match else None


def _describe(compiled: _Compiled, readable: dict[str, str], arch: str, budget_chars: int) -> Report:
    kernels = [_kernel(compiled, symbol, name, arch) for symbol, name in readable.items()]
    shown = kernels[:_KERNELS_SHOWN]
    for kernel in kernels[_KERNELS_SHOWN:]:
        kernel |= {"ptx": None, "sass": None}  # the record of a call, not an archive: forty instances are megabytes
    text = "\n\n".join(_kernel_text(compiled, kernel, arch, (budget_chars - 200) // len(shown)) for kernel in shown)
    if compiled.sass is None:
        text += f"\n\n{NO_SASS}"
    if len(kernels) > len(shown):
        text += f"\n\n[{len(kernels) - len(shown)} further kernels or template instances left out]"
    return Report(text, {"arch": arch, "kernels": kernels, "sass_available": compiled.sass is not None})


def _kernel(compiled: _Compiled, symbol: str, name: str, arch: str) -> dict[str, Any]:
    resources, ptx = compiled.resources[symbol], compiled.ptx.get(symbol)
    sass = compiled.sass.get(symbol) if compiled.sass else None
    ptx_counts = mix_ptx(ptx.instructions) if ptx else {}
    sass_counts = mix_sass(sass.instructions) if sass else None
    return {
        "name": name,
        "symbol": symbol,
        "resources": asdict(resources),
        "occupancy": [asdict(row) for row in table(arch, resources.registers, resources.shared_bytes)],
        "instructions": {"ptx": ptx_counts, "sass": sass_counts},
        "notes": notes(resources, ptx_counts, sass_counts),
        "ptx": "\n".join(ptx.listing()) if ptx else None,
        "sass": "\n".join(sass.listing()) if sass else None,
    }


def _kernel_text(compiled: _Compiled, kernel: dict[str, Any], arch: str, budget_chars: int) -> str:
    symbol, resources = kernel["symbol"], compiled.resources[kernel["symbol"]]
    sass, ptx = (compiled.sass or {}).get(symbol), compiled.ptx.get(symbol)
    counts = kernel["instructions"]
    sections = [
        f"Kernel {kernel['name']} ({arch})\n{_resource_line(resources)}",
        _occupancy_text(kernel["occupancy"], arch),
        "\n".join(f"{kind.upper()} instructions: " + ", ".join(f"{n} {what}" for what, n in mix.items())
                  for kind, mix in counts.items() if mix),
        *(["Notes:\n" + "\n".join(f"  - {note}" for note in kernel["notes"])] if kernel["notes"] else []),
        *_loop_sections(sass, "SASS"), *([] if sass else _loop_sections(ptx, "PTX")),
        *([f"PTX:\n{cut(kernel['ptx'], max(budget_chars // 4, 600))}"] if kernel["ptx"] else []),
        *([f"SASS:\n{kernel['sass']}"] if kernel["sass"] else []),
    ]  # fmt: skip
    return within(sections, budget_chars)


def _resource_line(one: Resources) -> str:
    constant = "" if one.constant_bytes is None else f", constant memory {one.constant_bytes} bytes"
    return (f"registers {one.registers} per thread, spills {one.spill_store_bytes} bytes stored and "
            f"{one.spill_load_bytes} loaded, stack {one.stack_bytes} bytes per thread, static shared memory "
            f"{one.shared_bytes} bytes per block{constant}")  # fmt: skip


def _occupancy_text(rows: Sequence[dict[str, Any]], arch: str) -> str:
    if not rows:
        return f"Occupancy: unknown, the limits of {arch} are not in the table"
    cells = [f"{row['block']}: {row['share']:.0%} ({row['limited_by']})" if row["blocks_per_sm"]
             else f"{row['block']}: cannot launch ({row['limited_by']})" for row in rows]  # fmt: skip
    return ("Theoretical occupancy by block size (and what limits it; dynamic shared memory not counted):\n  "
            + ", ".join(cells))  # fmt: skip


def _loop_sections(function: DeviceFunction | None, kind: str) -> list[str]:
    """The innermost loops, deepest and longest first: where a kernel spends its time, if anywhere."""
    if function is None:
        return []
    inner = [loop for loop in function.loops() if loop.innermost]
    inner.sort(key=lambda loop: (-loop.depth, loop.first - loop.last))
    return [cut("\n".join([f"{kind} of an innermost loop ({loop.last - loop.first + 1} instructions):",
                           *function.listing(loop.first, loop.last)]), 1800) for loop in inner[:2]]  # fmt: skip


def notes(resources: Resources, ptx: dict[str, int], sass: dict[str, int] | None) -> list[str]:
    """What stands out in a kernel, each with the number it rests on and what may change it."""
    found = []
    if resources.spill_store_bytes or resources.spill_load_bytes:
        found.append(f"registers spill to local memory ({resources.spill_store_bytes} bytes stored): fewer live values, "
                     "less unrolling, or looser launch bounds")  # fmt: skip
    elif resources.stack_bytes:
        found.append(f"{resources.stack_bytes} bytes of local memory per thread: an array indexed by values unknown at "
                     "compile time lives in device memory")  # fmt: skip
    found += _precision_notes(ptx, sass) + _load_notes(ptx)
    if divisions := ptx.get("int_div", 0):
        found.append(f"{divisions} integer divisions or remainders by a value unknown at compile time: each is tens of "
                     "instructions")  # fmt: skip
    if divisions := ptx.get("fp_div", 0):
        found.append(f"{divisions} floating-point divisions: each is several instructions and a slow path")
    if atomics := ptx.get("atomic", 0):
        found.append(f"{atomics} atomic operations: reduce within a warp or block first where many threads meet")
    return found


def _precision_notes(ptx: dict[str, int], sass: dict[str, int] | None) -> list[str]:
    doubles = (sass or {}).get("fp64", ptx.get("fp64", 0))
    converted = ptx.get("float_to_double", 0)
    if not doubles or not converted:
        return []
    return [f"{doubles} double-precision instructions, and {converted} values converted from float to double: a literal "
            "without f (2.0 for 2.0f) or a double function (exp for expf) in float code"]  # fmt: skip


def _load_notes(ptx: dict[str, int]) -> list[str]:
    loads = {kind: count for kind, count in ptx.items() if kind.startswith("load_global")}
    if not loads:
        return []
    found = []
    if not any("_nc" in kind for kind in loads):
        found.append(f"none of {sum(loads.values())} global loads uses the read-only path: const __restrict__ pointers, "
                     "or __ldg")  # fmt: skip
    widest = max((int(match[1]) for kind in loads if (match := re.search(r"_(\d+)B$", kind))), default=0)
    if 0 < widest < 16:
        found.append(f"the widest global load is {widest} bytes per thread: 16 (float4, double2) where neighbouring "
                     "elements are used and aligned")  # fmt: skip
    return found
