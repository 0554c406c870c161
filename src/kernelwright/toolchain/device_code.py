"""PTX, SASS and AMDGCN text: one kernel's instructions, its loops, and an instruction mix in words common to all.

Reads what nvcc writes as PTX, what `nvdisasm -c` prints, and clang's assembly for AMD. SASS is what runs; PTX still
shows types, divisions and conversions that SASS spells out over many instructions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kernelwright.toolchain.assembly import Loop, loops_of_jumps

LINE_CHARS = 10_000
"""What is read of a line at most; the instructions of these languages are far shorter."""
_JUMP = re.compile(r"(?:@!?%?\w+\s+)?(?:BRA|bra|s_c?branch\w*)\b.*?([.$]L[\w.]+)")


def _lines(text: str) -> Iterator[str]:
    return (line[:LINE_CHARS] for line in text.splitlines())


@dataclass
class DeviceFunction:
    """One kernel in one of these languages: its instructions in order, and at which of them each label stands."""

    symbol: str
    instructions: list[str] = field(default_factory=list)
    """Without encodings and trailing semicolons, predicates (`@P0`) kept."""
    labels: dict[str, int] = field(default_factory=dict)

    def listing(self, first: int = 0, last: int | None = None) -> list[str]:
        """Instructions `first` to `last` as text, with the labels among them."""
        standing: dict[int, list[str]] = {}
        for label, at in self.labels.items():
            standing.setdefault(at, []).append(label)
        end = len(self.instructions) if last is None else last + 1
        return [line for at in range(first, end)
                for line in [*(f"{label}:" for label in standing.get(at, ())), f"  {self.instructions[at]}"]]  # fmt: skip

    def loops(self) -> list[Loop]:
        """Its loops, by jumps backwards; the endless jump that ends each SASS function is none."""
        jumps = []
        for at, one in enumerate(self.instructions):
            match = _JUMP.match(one)
            if match and match[1] in self.labels:
                jumps.append((at, self.labels[match[1]]))
        return loops_of_jumps(jumps)


def parse_ptx(text: str) -> dict[str, DeviceFunction]:
    """The `.entry` functions of a PTX module by their symbol."""
    found: dict[str, DeviceFunction] = {}
    current: DeviceFunction | None = None
    depth = 0
    for raw in _lines(text):
        line = raw.split("//")[0].strip()
        if depth == 0 and (match := re.search(r"\.entry\s+([\w$]+)", line)):
            current = found[match[1]] = DeviceFunction(match[1])
        elif depth == 0 and re.search(r"\.func\b", line):
            current = None
        depth += line.count("{") - line.count("}") if not re.match(r"\W*+\w[^{]*+\{[^}]*+\}", line) else 0
        if current is not None and depth > 0:
            _ptx_line(current, line)
    return found


def _ptx_line(function: DeviceFunction, line: str) -> None:
    if match := re.match(r"(\$?[\w$]+):", line):
        function.labels[match[1]] = len(function.instructions)
    elif re.match(r"(@!?%\w+\s+)?[a-z]", line):
        function.instructions.append(re.sub(r"\s+", " ", line.rstrip(";").strip()))


def parse_sass(text: str) -> dict[str, DeviceFunction]:
    """The functions that `nvdisasm -c` prints, by their symbol."""
    found: dict[str, DeviceFunction] = {}
    current: DeviceFunction | None = None
    for line in _lines(text):
        if match := re.match(r"\.text\.([\w$.]+):", line):
            current = found.setdefault(match[1], DeviceFunction(match[1]))
        elif current is not None and (match := re.match(r"(\.L_[\w.]+):", line)):
            current.labels[match[1]] = len(current.instructions)
        elif current is not None and (match := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?!\s|NOP)(.*?)\s*;", line)):
            current.instructions.append(re.sub(r"\s+", " ", re.sub(r"`\(([^)]*)\)", r"\1", match[1])))
    return found


def mix_ptx(instructions: Sequence[str]) -> dict[str, int]:
    """How many PTX instructions do what; only what is there. Loads and stores by space and bytes per thread."""
    counts: Counter[str] = Counter(total=len(instructions))
    for one in instructions:
        opcode = re.sub(r"^@!?%\w+ ", "", one).split(" ")[0]
        counts.update(_ptx_kinds(opcode.split(".")))
    return dict(counts)


_SPECIAL_PTX = {"sqrt", "rsqrt", "rcp", "ex2", "lg2", "sin", "cos", "tanh"}
_ARITHMETIC_PTX = {"add", "sub", "mul", "mad", "fma", "div", "rem", "min", "max", "neg", "abs", *_SPECIAL_PTX}
_OTHER_PTX = {"bra": "branch", "call": "call", "atom": "atomic", "red": "atomic", "bar": "barrier",
              "barrier": "barrier", "shfl": "shuffle", "cvt": "convert", "mma": "tensor", "wmma": "tensor",
              "wgmma": "tensor", "tcgen05": "tensor"}  # fmt: skip


def _ptx_kinds(parts: list[str]) -> list[str]:
    name, last = parts[0], parts[-1]
    if name in ("ld", "st", "ldu"):
        return _ptx_memory(parts)
    kinds = [_OTHER_PTX[name]] if name in _OTHER_PTX else []
    if name == "cvt" and "f64" in parts and last == "f32":
        kinds.append("float_to_double")
    if name == "cp" and "async" in parts:
        kinds.append("async_copy")
    if name in _ARITHMETIC_PTX and last in ("f64", "f32", "f16", "f16x2", "bf16", "bf16x2"):
        kinds.append({"f64": "fp64", "f32": "fp32"}.get(last, "fp16"))
        kinds += ["fma"] if name in ("fma", "mad") else []
    if name in ("div", "rem"):
        kinds.append("fp_div" if last in ("f64", "f32") else "int_div")
    return kinds + (["special"] if name in _SPECIAL_PTX else [])


def _ptx_memory(parts: list[str]) -> list[str]:
    space = next((part for part in parts if part in ("global", "shared", "local", "const", "param")), None)
    space = space or ("shared" if any(part.startswith("shared::") for part in parts) else "generic")
    if space == "param":
        return []
    bits = re.fullmatch(r"[usfb](\d+)", parts[-1])
    vector = next((int(part[1:]) for part in parts if re.fullmatch(r"v[248]", part)), 1)
    width = f"_{int(bits[1]) // 8 * vector}B" if bits else ""
    return [f"{'store' if parts[0] == 'st' else 'load'}_{space}{'_nc' if 'nc' in parts else ''}{width}"]


_SASS_MEMORY = {"LDG": "load_global", "STG": "store_global", "LDS": "load_shared", "STS": "store_shared",
                "LDL": "load_local", "STL": "store_local", "LD": "load_generic", "ST": "store_generic"}  # fmt: skip
_SASS_KINDS = {
    "fp32": "FADD FMUL FFMA FMNMX FSET FSETP FADD2 FMUL2 FFMA2 FMNMX3", "fma": "FFMA DFMA HFMA2 FFMA2",
    "fp64": "DADD DMUL DFMA DMNMX DSET DSETP", "fp16": "HADD2 HMUL2 HFMA2 HMNMX2 HSETP2 HSET2",
    "tensor": "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA UTCHMMA UTCIMMA UTCQMMA", "special": "MUFU",
    "atomic": "ATOM ATOMG ATOMS RED REDG REDAS", "barrier": "BAR", "branch": "BRA BRX JMP BRXU", "call": "CALL",
    "convert": "F2F F2I I2F I2I F2FP I2FP F2IP", "shuffle": "SHFL", "async_copy": "LDGSTS UBLKCP UTMALDG UTMASTG",
}  # fmt: skip
_SASS_KIND: dict[str, list[str]] = {}
for _kind, _names in _SASS_KINDS.items():
    for _name in _names.split():
        _SASS_KIND.setdefault(_name, []).append(_kind)


def mix_sass(instructions: Sequence[str]) -> dict[str, int]:
    """How many SASS instructions do what, in the words of `mix_ptx`."""
    counts: Counter[str] = Counter(total=len(instructions))
    for one in instructions:
        parts = re.sub(r"^@!?U?P\w+ ", "", one).split(" ")[0].split(".")
        if "-RZ, RZ, " not in one:  # HFMA2 of zeros is how SASS loads a constant
            counts.update(_SASS_KIND.get(parts[0], ()))
        if parts[0] in _SASS_MEMORY:
            counts[f"{_SASS_MEMORY[parts[0]]}{'_nc' if 'CONSTANT' in parts else ''}_{_sass_bytes(parts)}B"] += 1
        if parts[:3] == ["F2F", "F64", "F32"]:
            counts["float_to_double"] += 1
    return dict(counts)


def _sass_bytes(parts: Sequence[str]) -> int:
    widths = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
    return next((widths[part] for part in parts[1:] if part in widths), 4)


def parse_amdgcn(text: str) -> dict[str, DeviceFunction]:
    """The kernels of clang's assembly for AMD devices, by their symbol; other device functions are left out."""
    kernels = set(re.findall(r"^\s*\.amdhsa_kernel (\S+)", text, re.MULTILINE))
    found: dict[str, DeviceFunction] = {}
    current: DeviceFunction | None = None
    for raw in _lines(text):
        line = raw.split(";")[0].rstrip()
        if match := re.match(r"([\w$.]+):", line):
            if match[1] in kernels:
                current = found[match[1]] = DeviceFunction(match[1])
            elif current is not None:
                current.labels[match[1]] = len(current.instructions)
        elif re.match(r"\s*\.(section|amdhsa_kernel)", line):
            current = None
        elif current is not None and re.match(r"\s+[a-z]", line):
            current.instructions.append(re.sub(r"\s+", " ", line.strip()))
    return found


_AMD_MEMORY = {"global_load": "load_global", "global_store": "store_global", "flat_load": "load_generic",
               "flat_store": "store_generic", "ds_read": "load_shared", "ds_load": "load_shared",
               "ds_write": "store_shared", "ds_store": "store_shared", "buffer_load": "load_local",
               "buffer_store": "store_local", "scratch_load": "load_local", "scratch_store": "store_local",
               "s_load": "load_scalar"}  # fmt: skip
_AMD_ACCESS = re.compile(
    r"(global|flat|ds|buffer|scratch|s)_(load|store|read|write)2?_([a-z]+?)(\d+)?(?:x(\d+))?(?=[ _]|$)"
)
_AMD_KINDS = (
    ("fma", r"v_(pk_)?(fma|fmac|mad|mac)\w*_f"), ("fp64", r"v_\w*_f64"), ("fp32", r"v_(?!cvt)\w*_f32"),
    ("fp16", r"v_(?!cvt)\w*_f16"), ("tensor", r"v_(mfma|wmma|smfmac)"), ("convert", r"v_cvt_"),
    ("float_to_double", r"v_cvt_f64_f32"), ("special", r"v_(rcp|rsq|sqrt|exp|log|sin|cos)_"),
    ("fp_div", r"v_div_fixup_"), ("atomic", r"(global|flat|buffer|ds)_(atomic|(add|min|max|and|or|cmpst)_)"),
    ("barrier", r"s_barrier"), ("branch", r"s_c?branch"), ("call", r"s_swappc"),
    ("shuffle", r"(ds_b?permute|v_readlane|v_permlane)|.* row_|.* quad_perm"),
)  # fmt: skip


def mix_amdgcn(instructions: Sequence[str]) -> dict[str, int]:
    """How many AMDGCN instructions do what, in the words of `mix_ptx`."""
    counts: Counter[str] = Counter(total=len(instructions))
    for one in instructions:
        counts.update(kind for kind, pattern in _AMD_KINDS if re.match(pattern, one))
        if (match := _AMD_ACCESS.match(one)) and (kind := _AMD_MEMORY.get(f"{match[1]}_{match[2]}")):
            unit = {"ubyte": 1, "sbyte": 1, "byte": 1, "ushort": 2, "sshort": 2, "short": 2}.get(match[3], 4)
            width = int(match[4]) // 8 if match[4] else unit * int(match[5] or 1)
            counts[f"{kind}_{width}B"] += 1
    return dict(counts)
