"""Assembly text of x86-64 and AArch64 compilers: which instructions belong to a region, its loops, and what they do.

An instruction belongs to a region when its line does, or when it was inlined (from a header) into a line that does.
Reads AT&T syntax as GCC and Clang print it with line tables (`-S -g1`).
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelwright.toolchain.symbols import base_name

LINE_CHARS = 10_000
"""What is read of a line at most; instructions are far shorter."""
_LABEL = re.compile(r"^([\w.$]+):")
_FUNCTION = re.compile(r"^\s*\.type\s+([\w.$]+),\s*[@%]function")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_LOC = re.compile(r"^\s*\.loc\s+(\d{1,9})\s+(\d{1,9})\b")
_X86_JUMP = re.compile(r"j[a-z]+$")
_ARM_JUMP = re.compile(r"(b|b\.\w+|b(eq|ne|lt|le|gt|ge|mi|pl|cc|cs|hi|ls|vs|vc|any|none|first|last)|cbn?z|tbn?z)$")


@dataclass(frozen=True)
class Instruction:
    mnemonic: str
    operands: str
    line: int | None
    """Its line of the region's file; None where it comes from another file."""
    in_region: bool

    @property
    def text(self) -> str:
        return f"{self.mnemonic} {self.operands}".rstrip()


@dataclass
class Function:
    """One function of the assembly: its instructions, and at which of them each label stands."""

    symbol: str
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Loop:
    """A stretch of a function that ends in a jump back to its start: instruction indices, `last` included."""

    first: int
    last: int
    depth: int
    """1 for a loop that no other holds."""
    innermost: bool


def parse(text: str, is_file: Callable[[str], bool], lines: tuple[int, int], names: Sequence[str]) -> list[Function]:
    """The functions of an assembly text that hold instructions of a region.

    `is_file` says whether a path of the line table is the region's file; functions called `names` belong as a whole.
    """
    reader = _Reader(is_file, lines, {name.split("::")[-1] for name in names})
    for line in text.splitlines():
        reader.read(line[:LINE_CHARS])
    return [function for function in reader.functions if any(one.in_region for one in function.instructions)]


class _Reader:
    def __init__(self, is_file: Callable[[str], bool], lines: tuple[int, int], names: set[str]) -> None:
        self._is_file, self._lines, self._names = is_file, lines, names
        self._wanted_files: set[str] = set()
        self._symbols: set[str] = set()
        self.functions: list[Function] = []
        self._inside = self._whole = False
        self._line: int | None = None

    def read(self, line: str) -> None:
        if match := _FUNCTION.match(line):
            self._symbols.add(match[1])
        elif match := _FILE.match(line):
            if self._is_file(posixpath.join(match[2], match[3]) if match[3] else match[2]):
                self._wanted_files.add(match[1])
        elif match := _LOC.match(line):
            self._move(match[1] in self._wanted_files, int(match[2]))
        elif match := _LABEL.match(line):
            self._label(match[1])
        elif self.functions and re.match(r"\s+[a-z]", line):
            self._instruction(line)

    def _move(self, wanted_file: bool, line: int) -> None:
        self._line = line if wanted_file and line else None
        if self._line is not None:  # other files, and line 0, are code inlined where we are
            self._inside = self._lines[0] <= self._line <= self._lines[1]

    def _label(self, label: str) -> None:
        if label in self._symbols:
            self.functions.append(Function(label))
            self._inside, self._whole, self._line = False, base_name(label) in self._names, None
        elif self.functions:
            self.functions[-1].labels[label] = len(self.functions[-1].instructions)

    def _instruction(self, line: str) -> None:
        words = re.split(r"\s(?:#|//)\s?", line.strip(), maxsplit=1)[0].rstrip(";").split(None, 1)
        if words[0] in ("rep", "lock", "repz", "bnd", "notrack", "data16") and len(words) > 1:
            prefix, words = words[0], words[1].split(None, 1)
            words[0] = f"{prefix} {words[0]}"
        operands = words[1].strip() if len(words) > 1 else ""
        belongs = self._inside or self._whole
        self.functions[-1].instructions.append(Instruction(words[0], operands, self._line, belongs))


def loops(function: Function) -> list[Loop]:
    """The loops of a function, by its jumps backwards."""
    jumps = ((at, _target(one, function.labels)) for at, one in enumerate(function.instructions))
    return loops_of_jumps([(at, start) for at, start in jumps if start is not None])


def loops_of_jumps(jumps: Sequence[tuple[int, int]]) -> list[Loop]:
    """The loops that jumps (from, to; instruction indices) make; jumps back to one start count as one loop."""
    spans: dict[int, int] = {}
    for at, start in jumps:
        if start < at:
            spans[start] = max(at, spans.get(start, at))
    return _nested(sorted(spans.items())[:LOOPS_READ])


LOOPS_READ = 2000
"""A function of machine code with more loops than that was not written by a person: the first of them are read."""


def _nested(spans: Sequence[tuple[int, int]]) -> list[Loop]:
    found = []
    for first, last in spans:
        inner = any(first <= a and b <= last and (a, b) != (first, last) for a, b in spans)
        depth = sum(a <= first and last <= b for a, b in spans)
        found.append(Loop(first, last, depth, not inner))
    return found


def _target(one: Instruction, labels: dict[str, int]) -> int | None:
    if not (_X86_JUMP.match(one.mnemonic) or _ARM_JUMP.match(one.mnemonic)):
        return None
    return labels.get(re.split(r",\s*", one.operands)[-1])


def mix(instructions: Sequence[Instruction]) -> dict[str, Any]:
    """How many instructions do what: `total`, packed arithmetic by width, loads, stores, …; only what is there."""
    counts: Counter[str] = Counter(total=len(instructions))
    calls: Counter[str] = Counter()
    x86 = any("%" in one.operands for one in instructions)
    for one in instructions:
        counts.update(_x86_kinds(one) if x86 else _arm_kinds(one))
        if one.mnemonic in ("call", "callq", "bl", "blr"):
            calls[one.operands.split("@")[0]] += 1
    return {**counts, **({"calls": dict(calls)} if calls else {})}


_X86_FP = re.compile(
    r"v?(?:add|sub|mul|div|min|max|sqrt|rsqrt\d*|rcp\d*|fn?m(?:add|sub)(?:\d+)?|fmaddsub\d+|hadd|addsub|dp|round|rndscale)"
    r"(ps|pd|ss|sd)$"
)
_X86_INTEGER = re.compile(r"v?p(?:add|sub|mul|madd|min|max|avg|sad|cmp|abs|sra|srl|sll|hadd|and|or|xor)[a-z]*")
_WIDTHS = {"zmm": 512, "ymm": 256, "xmm": 128}


def _x86_kinds(one: Instruction) -> list[str]:
    mnemonic, kinds = one.mnemonic.split()[-1], _x86_memory(one)
    width = next((bits for name, bits in _WIDTHS.items() if f"%{name}" in one.operands), None)
    if match := _X86_FP.match(mnemonic):
        kinds.append("scalar_fp" if match[1][0] == "s" else f"packed_fp_{width or 128}")
        kinds += [kind for kind in ("div", "sqrt") if mnemonic.lstrip("v").startswith(kind)]
        kinds += ["fma"] if "fm" in mnemonic or "fnm" in mnemonic else []
    elif width and _X86_INTEGER.match(mnemonic) and not _zeroes(one):
        kinds.append(f"packed_int_{width}")
    elif re.match(r"i?div[bwlq]?$", mnemonic):
        kinds.append("int_div")
    elif re.match(r"v?p?gather", mnemonic):
        kinds.append("gather")
    elif re.match(r"v?(cvt|pmovsx|pmovzx)", mnemonic):
        kinds.append("convert")
    elif _X86_JUMP.match(mnemonic):
        kinds.append("branch")
    return kinds


def _zeroes(one: Instruction) -> bool:
    return "xor" in one.mnemonic and len(set(re.split(r",\s*", one.operands))) == 1


def _x86_memory(one: Instruction) -> list[str]:
    mnemonic = one.mnemonic.split()[-1]
    if "(" not in one.operands or re.match(r"(lea|nop|prefetch|call|jmp)", mnemonic):
        return []
    operands = re.split(r",\s*(?![^(]*\))", one.operands)
    compares = re.match(r"(v?u?comis|cmp[bwlq]?$|test[bwlq]?$|push)", mnemonic) is not None
    writes = "(" in operands[-1] and not compares
    reads = not writes or re.match(r"(v?mov|v?p?extr|vpscatter|vscatter|set|pop)", mnemonic) is None
    stack = re.search(r"\((%rsp|%rbp)\)", one.operands) is not None
    return (["load"] if reads else []) + (["store"] if writes else []) + (["stack_access"] if stack else [])


def _arm_kinds(one: Instruction) -> list[str]:
    kinds = []
    if re.match(r"(ld[rpu1-4nf]|ldu?r)", one.mnemonic):
        kinds.append("load")
    elif re.match(r"(st[rpu1-4n]|stu?r)", one.mnemonic):
        kinds.append("store")
    elif _ARM_JUMP.match(one.mnemonic):
        kinds.append("branch")
    elif one.mnemonic.startswith("f") and not one.mnemonic.startswith("fmov"):
        kinds.append(_arm_width(one, "fp") or "scalar_fp")
        kinds += [kind for kind in ("div", "sqrt") if kind in one.mnemonic]
        kinds += ["fma"] if re.match(r"fn?m(la|ls|add|sub|ad|sb)", one.mnemonic) else []
    elif re.match(r"[us]div", one.mnemonic):
        kinds.append("int_div")
    elif (width := _arm_width(one, "int")) and not re.match(r"(movi?|dup|ins)$", one.mnemonic):
        kinds.append(width)
    if kinds[:1] in (["load"], ["store"]) and re.search(r"\[(sp|x29)\b", one.operands):
        kinds.append("stack_access")
    return kinds


def _arm_width(one: Instruction, kind: str) -> str | None:
    if re.search(r"\bz\d+\.", one.operands):
        return f"packed_{kind}_sve"
    if re.search(r"\bv\d+\.(16b|8h|4s|2d)", one.operands):
        return f"packed_{kind}_128"
    return f"packed_{kind}_64" if re.search(r"\bv\d+\.(8b|4h|2s)", one.operands) else None


def frame_bytes(function: Function) -> int | None:
    """What a function takes from the stack beside saved registers; None where it never moves the stack pointer."""
    for one in function.instructions:
        match = re.match(r"\$(\d{1,9}),\s*%rsp$", one.operands) if one.mnemonic in ("subq", "sub") else None
        match = match or (re.match(r"sp,\s*sp,\s*#?(\d{1,9})$", one.operands) if one.mnemonic == "sub" else None)
        match = match or (re.search(r"\[sp,\s*#?-(\d{1,9})\]!", one.operands) if one.mnemonic == "stp" else None)
        if match:
            return int(match[1])
    return None


def listing(function: Function, first: int = 0, last: int | None = None, region_only: bool = True) -> list[str]:
    """Instructions `first` to `last` as text, with their labels and a comment where the source line changes."""
    standing: dict[int, list[str]] = {}
    for label, at in function.labels.items():
        if any(label in one.operands for one in function.instructions):
            standing.setdefault(at, []).append(label)
    text: list[str] = []
    line: int | None = None
    skipped = False
    for at in range(first, len(function.instructions) if last is None else last + 1):
        one = function.instructions[at]
        text += [f"{label}:" for label in standing.get(at, ())] if one.in_region or not region_only else []
        if region_only and not one.in_region:
            skipped = True
            continue
        if skipped and text:
            text.append("  ...")
        skipped = False
        changed = one.line is not None and one.line != line
        line = one.line if changed else line
        text.append(f"  {one.text}" + (f"    # line {line}" if changed else ""))
    return text
