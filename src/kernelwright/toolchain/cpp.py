"""What g++ and clang++ say of a region: which loops became SIMD and which did not and why, its instructions, its stack.

The command is replayed exactly as the build gave it, plus arguments that make the compiler talk; measuring is not done
here, and neither is judging what the model should do about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.sandbox import JobResult
from kernelwright.toolchain import CompileCommand, Exec, Report
from kernelwright.toolchain.assembly import Function, Instruction, Loop, frame_bytes, listing, loops, mix, parse
from kernelwright.toolchain.replay import compile_arguments, cut, failure, same_file, sources_to_try, unique, within
from kernelwright.toolchain.symbols import demangle

_GCC = ("-fopt-info-vec-loop-optimized-missed",)
_CLANG = tuple(f"-Rpass{kind}=(loop-vectorize|slp-vectorizer|loop-unroll)" for kind in ("", "-missed", "-analysis"))
_REMARK = re.compile(
    r"^(?P<file>[^\s:][^:]*):(?P<line>\d{1,9}):(?P<column>\d{1,9}): (?P<kind>optimized|missed|note|remark):\s+(?P<text>.+)$"
)
_SOURCES_TRIED = 4
_REMARKS_PER_LINE = 3
_LOOPS_SHOWN = 3


@dataclass(frozen=True)
class Remark:
    line: int
    done: bool
    """Whether the compiler did it, or says why it did not."""
    text: str


async def report(command: CompileCommand, file: str, lines: tuple[int, int], function_names: Sequence[str], exec_: Exec,
                 budget_chars: int = 6000) -> Report:  # fmt: skip
    """Vectorisation remarks, hot loop, instruction mix and stack of a region.

    `file` is relative to the repository, `lines` first and last included; functions called `function_names` belong as a
    whole, wherever they were inlined from. A command that does not compile gives a report that says so.
    """
    clang = await _is_clang(command, exec_)
    done: JobResult | None = None
    for source in sources_to_try(command, file)[:_SOURCES_TRIED]:
        argv = [command.argv[0], *compile_arguments(command, source), "-w", "-fno-lto", "-g1", "-S", "-o", "-",
                *(_CLANG if clang else _GCC), source]  # fmt: skip
        done = await exec_(argv, command.cwd)
        if done.exit_code != 0:
            continue
        found = parse(
            done.stdout.decode(errors="replace"), lambda path: same_file(path, command.cwd, file), lines, function_names
        )
        remarks = parse_remarks(done.stderr.decode(errors="replace"), command.cwd, file, lines)
        if found or remarks:
            return await _describe(command, found, remarks, exec_, budget_chars)
    if done is None or done.exit_code != 0:
        return failure(command, done) if done else _nothing(f"The recorded command compiles no source: {command.argv}")
    return _nothing(f"The compiler emitted no instruction for {file} lines {lines[0]} to {lines[1]}: the region is not "
                    "compiled by this command, or nothing uses it (an unused static or template function).")  # fmt: skip


def _nothing(text: str) -> Report:
    return Report(text, {"vectorized": [], "missed": [], "instructions": {}, "assembly": ""})


async def _is_clang(command: CompileCommand, exec_: Exec) -> bool:
    done = await exec_([command.argv[0], "--version"], command.cwd)
    return b"clang" in done.stdout.lower() or b"llvm" in done.stdout.lower()


def parse_remarks(text: str, cwd: str, file: str, lines: tuple[int, int]) -> list[Remark]:
    """The remarks about lines of a region in what GCC or Clang wrote to stderr, without repetitions."""
    remarks = []
    for one in text.splitlines():
        match = _REMARK.match(one)
        if not match or not same_file(match["file"], cwd, file) or not lines[0] <= int(match["line"]) <= lines[1]:
            continue
        words = match["text"].rstrip(".")
        done = match["kind"] == "optimized"
        if kind := re.search(r" \[-Rpass(-\w+)?=[\w-]+\]$", words):
            done, words = kind[1] is None, words[: kind.start()]
        remarks.append(Remark(int(match["line"]), done, words))
    return sorted(unique(remarks), key=lambda remark: remark.line)


async def _describe(command: CompileCommand, functions: list[Function], remarks: list[Remark], exec_: Exec,
                    budget_chars: int) -> Report:  # fmt: skip
    region = [one for function in functions for one in function.instructions if one.in_region]
    counts = mix(region)
    hot = _hot_loops(functions)
    names = await demangle([*(f.symbol for f in functions), *counts.get("calls", ())], command.cwd, exec_)
    stack = [{"function": names[f.symbol], "frame_bytes": frame_bytes(f)} for f in functions]
    whole = "\n".join(line for f in functions for line in [f"{names[f.symbol]}:", *listing(f)])
    notes = _notes(command, counts, hot, remarks)
    text = within([*_remark_sections(remarks), *_summary(counts, stack, names, notes), *_loop_sections(hot, names),
                   f"Assembly of the region:\n{whole}"], budget_chars)  # fmt: skip
    return Report(text, {
        "vectorized": [{"line": r.line, "what": r.text} for r in remarks if r.done],
        "missed": [{"line": r.line, "why": r.text} for r in remarks if not r.done],
        "instructions": counts,
        "loops": [{"function": names[f.symbol], "depth": loop.depth, "lines": _lines(body),
                   "instructions": mix(body)} for f, loop, body in hot],
        "stack": stack,
        "notes": notes,
        "assembly": whole,
    })  # fmt: skip


HotLoop = tuple[Function, Loop, list[Instruction]]


def _hot_loops(functions: Sequence[Function]) -> list[HotLoop]:
    """Innermost loops of the region, the likeliest hot one first: deepest, then with packed arithmetic, then longest."""
    found = []
    for function in functions:
        for loop in loops(function):
            body = function.instructions[loop.first : loop.last + 1]
            if loop.innermost and any(one.in_region for one in body):
                found.append((function, loop, body))
    return sorted(found, key=lambda one: (-one[1].depth, not _packed(mix(one[2])), -len(one[2])))


def _packed(counts: dict[str, Any]) -> dict[str, int]:
    return {kind: count for kind, count in counts.items() if kind.startswith("packed")}


def _lines(body: Sequence[Instruction]) -> list[int]:
    known = [one.line for one in body if one.line is not None]
    return [min(known), max(known)] if known else []


def _remark_sections(remarks: Sequence[Remark]) -> list[str]:
    sections = []
    for done, title in ((True, "The compiler did:"), (False, "The compiler did not:")):
        shown: list[str] = []
        for line in sorted({remark.line for remark in remarks if remark.done == done}):
            here = [remark.text for remark in remarks if remark.line == line and remark.done == done]
            here.sort(key=lambda text: "vectorize" not in text)
            more = f" (and {len(here) - _REMARKS_PER_LINE} more)" if len(here) > _REMARKS_PER_LINE else ""
            shown.append(f"  line {line}: {'; '.join(here[:_REMARKS_PER_LINE])}{more}")
        sections.append("\n".join([title, *(shown or ["  nothing reported for these lines"])]))
    return [cut(section, 1500) for section in sections]


def _summary(counts: dict[str, Any], stack: Sequence[dict[str, Any]], names: dict[str, str],
             notes: Sequence[str]) -> list[str]:  # fmt: skip
    frames = [f"{one['function']} {one['frame_bytes']} bytes" for one in stack if one["frame_bytes"]]
    text = ["Instructions of the region: " + describe_mix(counts, names)]
    text.append("Stack frames: " + ("; ".join(frames) or "none"))
    return ["\n".join(text), *(["Notes:\n" + "\n".join(f"  - {note}" for note in notes)] if notes else [])]


def describe_mix(counts: dict[str, Any], names: dict[str, str]) -> str:
    """An instruction mix in one line, as in `42 total, 8 packed_fp_128, 4 load; calls: exp ×2`."""
    numbers = [f"{count} {kind}" for kind, count in counts.items() if kind != "calls"]
    calls = [f"{names.get(name, name)}" + (f" ×{n}" if n > 1 else "") for name, n in counts.get("calls", {}).items()]
    return ", ".join(numbers) + (f"; calls: {', '.join(calls[:8])}" if calls else "")


def _loop_sections(hot: Sequence[HotLoop], names: dict[str, str]) -> list[str]:
    sections = []
    for function, loop, body in hot[:_LOOPS_SHOWN]:
        where = _lines(body)
        at = f"lines {where[0]} to {where[1]}" if where else "inlined code"
        title = f"Innermost loop ({at} of the file, in {names[function.symbol]}):"
        text = listing(function, loop.first, loop.last, region_only=False)
        sections.append(cut("\n".join([title, f"  {describe_mix(mix(body), names)}", *text]), 2200))
    return sections


def _notes(
    command: CompileCommand, counts: dict[str, Any], hot: Sequence[HotLoop], remarks: Sequence[Remark]
) -> list[str]:
    notes = []
    levels = [word for word in command.argv if re.fullmatch(r"-O(\d|fast|s|z|g)?", word)]
    if not levels or levels[-1] in ("-O0", "-Og"):
        notes.append(f"compiled with {levels[-1] if levels else 'no -O level'}: the compiler hardly optimises")
    target = any(word.startswith(("-march", "-mavx", "-mcpu", "-msse4")) for word in command.argv)
    packed = _packed(counts)
    if packed and not target and not any(kind.endswith(("256", "512", "sve")) for kind in packed):
        notes.append("SIMD is 128 bits wide: the command names no target such as -march=native")
    if hot:
        notes += _hot_notes(mix(hot[0][2]), remarks)
    if counts.get("stack_access", 0) > 0.15 * counts["total"]:
        notes.append(f"{counts['stack_access']} of {counts['total']} instructions touch the stack: spilled registers, "
                     "or local arrays")  # fmt: skip
    return notes


def _hot_notes(counts: dict[str, Any], remarks: Sequence[Remark]) -> list[str]:
    notes = []
    if counts.get("scalar_fp") and not _packed(counts):
        notes.append("the innermost loop computes one floating-point value at a time")
    if "calls" in counts:
        notes.append("the innermost loop calls functions; a call keeps a loop from SIMD unless it has a vector form")
    if counts.get("div") or counts.get("int_div"):
        notes.append("the innermost loop divides: a division takes several times as long as a multiplication")
    if any("aliasing" in remark.text for remark in remarks if remark.done):
        notes.append("the loop has a second version for pointers that overlap; __restrict__ makes it unnecessary")
    return notes
