"""Which part of a file may be the region: named kernels and functions, or the parallel loops of a function that also
prints and times."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import tree_sitter

from kernelwright.errors import UsageError
from kernelwright.source import Function, find_functions, parse, unparsed_kernels, walk

_LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")
_TELLTALE = re.compile(rb"\b(?:printf|puts|cout|cerr|chrono|clock|gettimeofday|omp_get_wtime|cudaEvent\w+)\b")
_WORKSHARING = re.compile(rb"#\s*pragma\s+omp\s.*\b(?:parallel|for|simd|loop|teams|distribute)\b", re.S)


@dataclass(frozen=True)
class RegionDraft:
    """A region by kernel name, or by lines where the function holds more than the kernel."""

    name: str
    kernel: str | None
    lines: tuple[int, int] | None
    note: str = ""
    file: str | None = None
    """Relative to the root, where it is not the draft's file."""


@dataclass(frozen=True)
class Loop:
    """An outermost parallel (or plain) loop: its lines with the pragma, and how deep loops nest in it."""

    first: int
    last: int
    depth: int


def candidates(data: bytes, language: str) -> list[Function]:
    """Functions that may be the region, the likeliest first: kernels; on a CPU functions with loops, OpenMP before others."""
    functions = find_functions(data, language)
    kernels = [function for function in functions if function.kernel]
    if kernels or language != "cpp":
        return kernels
    ranked = [(_weight(data, function), function) for function in functions]
    return [function for weight, function in sorted(ranked, key=lambda one: -one[0]) if weight > 0]


def _weight(data: bytes, function: Function) -> float:
    body = data[function.body_start : function.end]
    pragmas = len(_WORKSHARING.findall(body.replace(b"\n", b" \n"))) and len(re.findall(rb"#\s*pragma\s+omp", body))
    loops = len(re.findall(rb"\b(?:for|while)\s*\(", body))
    if not loops:
        return 0.0
    return loops + 10.0 * pragmas - (5.0 if _TELLTALE.search(body) and not pragmas else 0.0)


def choose(data: bytes, file: str, language: str, kernel: str | None) -> list[RegionDraft]:
    """The regions that `kernel` names ("a", "a+b", "12-40"), or the only candidate where it is None.

    Raises UsageError with the candidates where the choice is open or a name is not there.
    """
    if kernel is not None and (lines := re.fullmatch(r"(\d+)\s*-\s*(\d+)", kernel)):
        return [RegionDraft(f"lines {lines[1]} to {lines[2]}", None, (int(lines[1]), int(lines[2])))]
    found = candidates(data, language)
    if kernel is None:
        if language == "cpp" and found and _stands_out(data, found):
            found = found[:1]
        if len(found) != 1:
            raise _open_choice(found, unparsed_kernels(data, language), file)
        return [_region(data, language, found[0])]
    return [_region(data, language, _named(data, language, file, name.strip())) for name in kernel.split("+")]


def _stands_out(data: bytes, found: Sequence[Function]) -> bool:
    weights = [_weight(data, function) for function in found[:2]]
    return len(weights) == 1 or (weights[0] >= 10 > weights[1])


def _open_choice(found: Sequence[Function], unparsed: Sequence[str], file: str) -> UsageError:
    if not found and not unparsed:
        return UsageError(f"no kernel was found in {file}", "a file that defines the hot function",
                          "--kernel FIRST-LAST names a range of lines")  # fmt: skip
    names = [f"{function.name} (line {function.first_line})" for function in found[:12]]
    names += [f"{name} (by lines only: a macro hides it)" for name in unparsed[:4]]
    return UsageError(f"{file} holds {len(found) + len(unparsed)} functions that may be the region: {', '.join(names)}",
                      "one of them", "--kernel NAME, --kernel A+B for two, or --kernel FIRST-LAST for lines")  # fmt: skip


def _named(data: bytes, language: str, file: str, name: str) -> Function:
    functions = find_functions(data, language)
    found = [function for function in functions if function.name == name]
    if len(found) > 1 and sum(function.kernel for function in found) == 1:
        found = [function for function in found if function.kernel]
    if len(found) == 1:
        return found[0]
    if found:
        lines = ", ".join(f"{function.first_line}-{_last_line(data, function)}" for function in found)
        raise UsageError(f"{name!r} is defined {len(found)} times in {file}", "a name found once",
                         f"--kernel with one of the line ranges {lines}")  # fmt: skip
    names = sorted({function.name for function in functions})
    near = difflib.get_close_matches(name, names, 4, 0.4) or names[:8]
    raise UsageError(f"{file} defines no function {name!r}", "the name of a function of that file",
                     f"one of {', '.join(near)}" if near else "--kernel FIRST-LAST names a range of lines")  # fmt: skip


def _last_line(data: bytes, function: Function) -> int:
    return data.count(b"\n", 0, function.end) + 1


def _region(data: bytes, language: str, function: Function) -> RegionDraft:
    if function.kernel or not _TELLTALE.search(data[function.body_start : function.end]):
        twins = [other for other in find_functions(data, language) if other.name == function.name]
        if len(twins) > 1 and not function.kernel:
            return RegionDraft(function.name, None, (function.first_line, _last_line(data, function)))
        return RegionDraft(function.name, function.name, None)
    loops = parallel_loops(data, language, function)
    if not loops:
        return RegionDraft(function.name, function.name, None,
                           "this function also prints or times: narrow it to lines = [first, last]")  # fmt: skip
    best = max(loops, key=lambda loop: (loop.depth, loop.last - loop.first))
    others = ", ".join(f"{loop.first}-{loop.last}" for loop in loops if loop != best)
    note = f"the deepest loop of {function.name}, which also prints or times and so cannot be the region as a whole"
    return RegionDraft(f"{function.name} loop", None, (best.first, best.last),
                       note + (f"; other loops: lines {others}" if others else ""))  # fmt: skip


def parallel_loops(data: bytes, language: str, function: Function) -> list[Loop]:
    """The outermost OpenMP loops of `function`, pragma included; where it has none, loops that neither print nor time."""
    nodes = [node for node in walk(parse(data, language).root_node)
             if node.start_byte >= function.body_start and node.end_byte <= function.end]  # fmt: skip
    found = [_pragma_loop(data, node) for node in nodes if node.type == "preproc_call"]
    loops = [loop for loop in found if loop is not None]
    if not loops:
        quiet = (node for node in nodes if node.type in _LOOPS)
        quiet = (node for node in quiet if not _TELLTALE.search(data[node.start_byte : node.end_byte]))
        loops = [Loop(node.start_point.row + 1, node.end_point.row + 1, _depth(node)) for node in quiet]
    return [loop for loop in loops if not any(_within(loop, other) for other in loops)]


def _within(loop: Loop, other: Loop) -> bool:
    return loop != other and other.first <= loop.first and loop.last <= other.last


def _pragma_loop(data: bytes, node: tree_sitter.Node) -> Loop | None:
    text = data[node.start_byte : node.end_byte]
    if not _WORKSHARING.match(text) or re.search(rb"\btarget\s+(?:enter\s+|exit\s+)?data\b", text):
        return None
    following = node.next_named_sibling
    while following is not None and following.type in ("comment", "preproc_call"):
        following = following.next_named_sibling
    if following is None or following.type not in (*_LOOPS, "compound_statement"):
        return None
    if _TELLTALE.search(data[following.start_byte : following.end_byte]):
        return None
    return Loop(node.start_point.row + 1, following.end_point.row + 1, _depth(following))


def _depth(node: tree_sitter.Node) -> int:
    below = max((_depth(child) for child in node.children), default=0)
    return below + (node.type in _LOOPS)
