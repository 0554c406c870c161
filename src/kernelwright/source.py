"""Source text: find functions by syntax tree, resolve a task's regions to spans, splice new text into a file.

Spans are byte offsets into the file as it lies on disk. The text of a region is shown with `\\n` line ends and spliced
back with the file's own, so that a CRLF file stays one. A parser that knows no macros misses some kernels; an explicit
line range always works, and `unparsed_kernels` names what a plain regular expression saw and the parser did not.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import tree_sitter
import tree_sitter_cpp
import tree_sitter_cuda

from kernelwright.errors import TaskError
from kernelwright.task import Region, Task

SOURCE_SUFFIXES = (
    ".c",
    ".cc",
    ".cpp",
    ".cxx",
    ".C",
    ".cu",
    ".cuh",
    ".h",
    ".hh",
    ".hpp",
    ".hxx",
    ".hip",
    ".inl",
    ".ipp",
)


@dataclass(frozen=True)
class Function:
    """A function definition; `start` and `end` are byte offsets, template header and linkage included."""

    name: str
    kernel: bool
    """Whether it is a `__global__` function."""
    start: int
    end: int
    body_start: int
    """Offset of the opening brace."""
    first_line: int


@dataclass(frozen=True)
class Span:
    """A region as found in its file: byte offsets, 1-based lines (both included), text with `\\n` line ends."""

    region: str
    file: str
    start: int
    end: int
    first_line: int
    last_line: int
    text: str

    def shifted(self, by_bytes: int, by_lines: int) -> Span:
        """The same text after something before it in its file grew."""
        return replace(
            self,
            start=self.start + by_bytes,
            end=self.end + by_bytes,
            first_line=self.first_line + by_lines,
            last_line=self.last_line + by_lines,
        )


@cache
def _parser(language: str) -> tree_sitter.Parser:
    grammar = tree_sitter_cpp.language() if language == "cpp" else tree_sitter_cuda.language()
    return tree_sitter.Parser(tree_sitter.Language(grammar))


def parse(data: bytes, language: str) -> tree_sitter.Tree:
    """The syntax tree of `data`; `language` is a task's: cuda, hip or cpp."""
    return _parser(language).parse(data)


def walk(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """The node and all below it, in source order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.children))


def depth_of(node: tree_sitter.Node) -> int:
    """How many levels lie below a node."""
    cursor, depth, deepest = node.walk(), 0, 0
    while True:
        if cursor.goto_first_child():
            depth += 1
            deepest = max(deepest, depth)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return deepest
            depth -= 1


def find_functions(data: bytes, language: str) -> list[Function]:
    """All function definitions, in source order."""
    return list(_functions(data, language))


@lru_cache(maxsize=64)
def _functions(data: bytes, language: str) -> tuple[Function, ...]:
    """Kept for a while, since one file is asked for each of its kernels."""
    found = []
    for node in walk(parse(data, language).root_node):
        if node.type != "function_definition":
            continue
        name, body = function_name(node), node.child_by_field_name("body")
        if name is None or body is None:
            continue
        outer = _with_header(node)
        head = data[outer.start_byte : body.start_byte]
        found.append(
            Function(
                name,
                b"__global__" in head,
                outer.start_byte,
                outer.end_byte,
                body.start_byte,
                outer.start_point.row + 1,
            )
        )
    return tuple(found)


def function_name(definition: tree_sitter.Node) -> str | None:
    """The unqualified name that a function definition defines, or None where the tree holds none."""
    node = definition.child_by_field_name("declarator")
    while node is not None and node.type not in ("identifier", "field_identifier", "destructor_name", "operator_name"):
        step = node.child_by_field_name("declarator") or node.child_by_field_name("name")
        if step is None:
            step = next((child for child in node.named_children if child.type.endswith("declarator")), None)
        node = step
    return node.text.decode(errors="replace") if node is not None and node.text is not None else None


def _with_header(node: tree_sitter.Node) -> tree_sitter.Node:
    while node.parent is not None and node.parent.type in ("template_declaration", "linkage_specification"):
        node = node.parent
    return node


def unparsed_kernels(data: bytes, language: str) -> list[str]:
    """Names that look like `__global__` kernels to a regular expression and that the parser did not find."""
    heads = (data[found.end() : found.end() + _HEAD_BYTES] for found in re.finditer(rb"__global__", data))
    parsed = {function.name for function in find_functions(data, language)}
    return sorted({name for head in heads if (name := _name_before_parameters(head))} - parsed)


_HEAD_BYTES = 2000
"""How far behind `__global__` a kernel's parameters may open."""


def _name_before_parameters(head: bytes) -> str | None:
    opening = re.match(rb"[^;{}()]*+\(", head)
    if opening and re.search(rb"\b__launch_bounds__\s*+\($", opening[0]):
        opening = re.compile(rb"[^)]*+\)[^;{}()]*+\(").match(head, opening.end())
    name = re.search(rb"(?<!\w)([A-Za-z_]\w*+)\s*+\($", opening[0]) if opening else None
    return name[1].decode() if name else None


def region_spans(task: Task, root: Path | None = None) -> dict[str, Span]:
    """Every region of `task` as it lies under `root` (default: the task's repository), in the task's order.

    Raises TaskError for a region that is not there, not unique, or overlaps another.
    """
    spans = {region.name: _span(task, region, (root or task.root) / region.file) for region in task.region}
    ordered = sorted(spans.values(), key=lambda span: (span.file, span.start))
    for left, right in itertools.pairwise(ordered):
        if left.file == right.file and right.start < left.end:
            raise TaskError(
                f"{task.path}: the regions {left.region!r} (lines {left.first_line} to {left.last_line}) and "
                f"{right.region!r} (lines {right.first_line} to {right.last_line}) of {left.file} overlap",
                "regions that share no text",
                "one region that holds both",
            )
    return spans


def _span(task: Task, region: Region, path: Path) -> Span:
    data = path.read_bytes()
    where = f"{task.path}: region {region.name!r}"
    if region.kernel is not None:
        start, end = _kernel_span(data, task.language, region.kernel, f"{where}, file {region.file}")
    elif region.lines is not None:
        start, end = _line_span(data, *region.lines, where, region.file)
    else:
        assert region.markers is not None
        start, end = _marker_span(data, *region.markers, where, region.file)
    text = to_lf(data[start:end])
    if not text.strip():
        raise TaskError(
            f"{where} is empty in {region.file}", "at least one line of code", "other lines, or the name of a kernel"
        )
    first = data.count(b"\n", 0, start) + 1
    last = data.count(b"\n", 0, max(start, end - 1)) + 1
    return Span(region.name, region.file, start, end, first, last, text)


def _kernel_span(data: bytes, language: str, name: str, where: str) -> tuple[int, int]:
    functions = find_functions(data, language)
    found = [function for function in functions if function.name == name]
    if len(found) > 1 and sum(function.kernel for function in found) == 1:
        found = [function for function in found if function.kernel]
    if len(found) == 1:
        return found[0].start, found[0].end
    if found:
        lines = ", ".join(str(function.first_line) for function in found)
        raise TaskError(
            f"{where}: {name!r} is defined {len(found)} times, at lines {lines}",
            "a name found once",
            "lines = [first, last]",
        )
    names = sorted({function.name for function in functions} | set(unparsed_kernels(data, language)))
    near = difflib.get_close_matches(name, names, 5, 0.4) or names[:8]
    raise TaskError(
        f"{where}: no function {name!r} was found",
        "the name of a function defined in that file",
        f"one of {', '.join(near)}, or lines = [first, last]" if near else "lines = [first, last]",
    )


def _line_span(data: bytes, first: int, last: int, where: str, file: str) -> tuple[int, int]:
    lines = data.splitlines(keepends=True)
    if last > len(lines):
        raise TaskError(
            f"{where}: lines = [{first}, {last}], but {file} has {len(lines)} lines",
            "lines inside the file",
            f"a last line of at most {len(lines)}, or kernel = NAME",
        )
    start = sum(map(len, lines[: first - 1]))
    return start, start + sum(map(len, lines[first - 1 : last])) - (
        len(lines[last - 1]) - len(lines[last - 1].rstrip(b"\r\n"))
    )


def _marker_span(data: bytes, begin: str, end: str, where: str, file: str) -> tuple[int, int]:
    lines = data.splitlines(keepends=True)
    found = [[i for i, line in enumerate(lines) if mark.encode() in line] for mark in (begin, end)]
    for mark, at in zip((begin, end), found, strict=True):
        if len(at) != 1:
            raise TaskError(
                f"{where}: the marker {mark!r} stands on {len(at)} lines of {file}",
                "exactly one line",
                "a longer text for the marker",
            )
    first, last = found[0][0] + 1, found[1][0] - 1
    if first > last:
        raise TaskError(
            f"{where}: nothing lies between the markers {begin!r} and {end!r} in {file}",
            "the first marker above the second, with lines between them",
            f"markers = [{end!r}, {begin!r}]" if first > last + 2 else "lines = [first, last]",
        )
    return _line_span(data, first + 1, last + 1, where, file)


def to_lf(data: bytes) -> str:
    """Bytes of a file as text with `\\n` line ends; bytes that are not UTF-8 survive a round trip."""
    return data.decode("utf-8", errors="surrogateescape").replace("\r\n", "\n")


def to_bytes(text: str) -> bytes:
    """The bytes that `to_lf` made text of; a surrogate that stands for no byte, as in a broken answer, becomes `?`."""
    return _NO_BYTE.sub("?", text).encode("utf-8", errors="surrogateescape")


_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def splice(data: bytes, replacements: Mapping[Span, str]) -> bytes:
    """`data`, a whole file, with the text of each span replaced; other bytes and the line-end convention are kept."""
    crlf = data.count(b"\r\n") * 2 > data.count(b"\n")
    for span in sorted(replacements, key=lambda span: span.start, reverse=True):
        text = replacements[span].replace("\r\n", "\n")
        if text == span.text:
            continue
        new = to_bytes(text.replace("\n", "\r\n") if crlf else text)
        data = data[: span.start] + new + data[span.end :]
    return data


def moved(spans: Mapping[str, Span], code: Mapping[str, str]) -> list[Span]:
    """The regions as they lie in files with the texts of `code` (region name → text) spliced in, in source order."""
    found: list[Span] = []
    grown: dict[str, tuple[int, int]] = {}
    for span in sorted(spans.values(), key=lambda span: (span.file, span.start)):
        by_bytes, by_lines = grown.get(span.file, (0, 0))
        text = code.get(span.region, span.text)
        longer = len(to_bytes(text)) - (span.end - span.start) if span.region in code else 0
        taller = text.rstrip("\n").count("\n") - span.text.rstrip("\n").count("\n")
        here = span.shifted(by_bytes, by_lines)
        found.append(replace(here, end=here.end + longer, last_line=here.last_line + taller, text=text))
        grown[span.file] = (by_bytes + longer, by_lines + taller)
    return found
