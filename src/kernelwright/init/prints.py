"""What a program prints, read from its source: the lines with times, verdicts and results, as regular expressions.

`printf` formats, `std::cout` chains and `std::print` calls become lines of literal text and values; words near a value
say whether it is a time, a rate, an error or a checksum. All of it is a guess for a person to look at; a real run
(`kernelwright.init.adapt`) corrects it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import tree_sitter

from kernelwright.source import depth_of, function_name, parse, walk

NUMBER = r"([-+.\w]+)"
_PRINTF = re.compile(r"%[-+ #0']*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|L|q|j|z|t)?([diouxXeEfFgGaAcsp%])")
_STREAMS = {"cout", "std::cout", "cerr", "std::cerr", "clog", "std::clog"}
_LINE_ENDS = {"endl", "std::endl"}
_MANIPULATORS = re.compile(
    r"(?:std::)?(?:fixed|scientific|defaultfloat|flush|left|right|internal|boolalpha|noboolalpha|hex|dec|showpos|"
    r"setprecision|setw|setfill|resetiosflags|setiosflags)\b"
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "", '"': '"', "\\": "\\", "'": "'", "a": "", "0": "", "b": "", "v": " "}
_ALWAYS_DEFINED = {"_OPENMP", "__CUDACC__", "__cplusplus", "__NVCC__", "__HIPCC__", "__linux__", "__GNUC__"}


@dataclass(frozen=True)
class Value:
    """A printed value: float, integer, text, or number where a stream hides which."""

    kind: str
    expression: str
    decimals: int | None = None
    """Digits behind the point, where a format fixes them."""


@dataclass(frozen=True)
class Line:
    """One line that the program may print."""

    file: str
    number: int
    """1-based line of the file."""
    function: str
    pieces: tuple[str | Value, ...]
    looped: bool
    guard: str | None
    """The macro without which the line is not compiled in."""

    @cached_property
    def literal(self) -> str:
        return " ".join(piece for piece in self.pieces if isinstance(piece, str)).strip()

    @property
    def where(self) -> str:
        return f"{self.file}:{self.number}"

    def before(self, at: int) -> str:
        """The literal text between the value at `at` and the value before it."""
        previous = self.pieces[at - 1] if at else ""
        return previous if isinstance(previous, str) else ""

    def after(self, at: int) -> str:
        following = self.pieces[at + 1] if at + 1 < len(self.pieces) else ""
        return following if isinstance(following, str) else ""

    def around(self, at: int) -> str:
        return f"{self.before(at)} {self.after(at)}"

    def pattern(self, at: int) -> str:
        """A regular expression for this line whose group 1 is the value at `at`."""
        text = ""
        for index, piece in enumerate(self.pieces[: at + 2]):
            if isinstance(piece, str):
                first, last = index == 0, isinstance(self.pieces[min(index + 1, len(self.pieces) - 1)], Value)
                piece = piece.lstrip() if first else piece
                text += _escaped(piece.rstrip() if index == len(self.pieces) - 1 else piece, last)
            elif index == at:
                text += NUMBER
            elif index < at:
                text += ".*?" if piece.kind == "text" else r"\S+"
        return text.strip()


@dataclass(frozen=True)
class Text:
    """A string literal of the source, wherever it stands."""

    file: str
    number: int
    text: str
    guard: str | None
    labels: bool
    """Whether a value follows it in the same printed line, as in `errors: %d`."""


def _escaped(literal: str, value_follows: bool) -> str:
    body = re.sub(r"[\t ]*\t[\t ]*| {2,}", "\0", literal)
    body = re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", body).replace("\0", r"\s+")
    return re.sub(r"(?:\\s\+| )+$", "", body) + r"\s*" if value_follows else body.rstrip()


DEEPEST = 500
"""Levels of a syntax tree; no person writes more, and what is asked of a node costs as much as it is deep."""


def read_prints(data: bytes, file: str, language: str) -> tuple[list[Line], list[Text]]:
    """All lines that the source `data` may print, and all its string literals; none of a file that nests deeper than
    `DEEPEST`."""
    root = parse(data, language).root_node
    if depth_of(root) > DEEPEST:
        return [], []
    lines, labels, above = [], set(), parents(root)
    for statement_pieces, node in _joined(_printing(root, above), above):
        for pieces, first in _split(statement_pieces, node):
            tidy = _merged(pieces)
            lines.append(
                Line(
                    file,
                    first.start_point.row + 1,
                    _enclosing(first, above),
                    tidy,
                    _looped(first, above),
                    _guard(first, above),
                )
            )
            labels |= {piece for piece, then in pairwise(tidy)
                       if isinstance(piece, str) and isinstance(then, Value)}  # fmt: skip
    texts = [
        Text(file, node.start_point.row + 1, text, _guard(node, above),
             any(text.strip() and text in label for label in labels) or bool(re.search(r"[:=]\s*%[^s]", text)))
        for node in walk(root)
        if node.type == "string_literal" and (text := _literal(node)).strip()
        and (node.id not in above or above[node.id].type != "preproc_include")
    ]  # fmt: skip
    for macro in (node for node in walk(root) if node.type in ("preproc_def", "preproc_function_def")):
        more = _macro_prints(macro, file, language, _guard(macro, above))
        lines += more[0]
        texts += more[1]
    return _labelled(lines), texts


def _macro_prints(
    macro: tree_sitter.Node, file: str, language: str, guard: str | None
) -> tuple[list[Line], list[Text]]:
    """What a macro's body prints; it stands for the function, since where it is used is not looked up."""
    body = macro.child_by_field_name("value")
    if body is None or body.text is None or not re.search(rb"printf|puts|cout|print(?:ln)?\(", body.text):
        return [], []
    name, above = _source(macro.child_by_field_name("name")), body.start_point.row
    plain = re.sub(rb"\\(\r?\n)", rb" \1", body.text)
    lines, texts = read_prints(b"void macro() {" + plain + b";}", file, language)
    return (
        [replace(line, number=line.number + above, function=name, guard=line.guard or guard) for line in lines],
        [replace(text, number=text.number + above, guard=text.guard or guard) for text in texts],
    )


def _labelled(lines: Sequence[Line]) -> list[Line]:
    """A value on a line of its own takes the label on the line before it, as in `Total time:` and then `1.5 s`."""
    out: list[Line] = []
    for line in lines:
        label = out[-1] if out else None
        if (
            label is not None and label.function == line.function and len(label.pieces) == 1
            and label.literal.endswith(":") and line.pieces and isinstance(line.pieces[0], Value)
        ):  # fmt: skip
            line = replace(line, pieces=(f"{label.literal} ", *line.pieces))
        if line.pieces:
            out.append(line)
    return out


_Printed = tuple[list[str | Value], tree_sitter.Node]


def _printing(root: tree_sitter.Node, above: Parents) -> Iterator[_Printed]:
    for node in walk(root):
        if node.type == "call_expression":
            pieces = _call_pieces(node)
        elif node.type == "binary_expression" and not (node.id in above and _is_shift(above[node.id])):
            pieces = _stream_pieces(node)
        else:
            continue
        if pieces:
            yield pieces, node


def _is_shift(node: tree_sitter.Node) -> bool:
    operator = node.child_by_field_name("operator")
    return node.type == "binary_expression" and operator is not None and operator.type == "<<"


def _source(node: tree_sitter.Node | None) -> str:
    return node.text.decode("utf-8", errors="replace") if node is not None and node.text is not None else ""


def _literal(node: tree_sitter.Node) -> str:
    """The text of a string literal, escapes resolved, or of several in a row."""
    if node.type == "concatenated_string":
        parts = (_literal(child) if "string" in child.type else "ld" if "PRI" in _source(child) else ""
                 for child in node.named_children)  # fmt: skip
        return "".join(parts)
    source = _source(node)
    if node.type == "raw_string_literal":
        return source[source.find("(") + 1 : source.rfind(")")]
    body = source[source.find('"') + 1 : -1]
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), body, flags=re.S)


def _is_text(node: tree_sitter.Node) -> bool:
    return node.type in ("string_literal", "concatenated_string", "raw_string_literal")


def _call_pieces(node: tree_sitter.Node) -> list[str | Value]:
    name = _source(node.child_by_field_name("function")).removeprefix("std::").removeprefix("fmt::")
    arguments = node.child_by_field_name("arguments")
    given = [child for child in arguments.named_children if child.type != "comment"] if arguments else []
    if name == "fprintf" and given and _source(given[0]) in ("stdout", "stderr"):
        name, given = "printf", given[1:]
    if not given or not _is_text(given[0]):
        return []
    text, values = _literal(given[0]), [_source(value) for value in given[1:]]
    if name == "printf":
        return _printf_pieces(text, values)
    if name in ("print", "println"):
        return _braces_pieces(text + ("\n" if name == "println" else ""), values)
    return [text + "\n"] if name == "puts" else []


def _printf_pieces(text: str, values: Sequence[str]) -> list[str | Value]:
    pieces: list[str | Value] = []
    at = used = 0
    for found in _PRINTF.finditer(text):
        pieces.append(text[at : found.start()])
        at = found.end()
        used += found.group().count("*")
        if found[1] == "%":
            pieces.append("%")
            continue
        kind = "float" if found[1] in "eEfFgGaA" else "text" if found[1] in "scpxXo" else "integer"
        fixed = re.search(r"\.(\d{1,2})l*[fF]$", found.group())
        decimals = int(fixed[1]) if fixed else None
        pieces.append(Value(kind, values[used] if used < len(values) else "", decimals))
        used += 1
    return [*pieces, text[at:]]


def _braces_pieces(text: str, values: Sequence[str]) -> list[str | Value]:
    parts = re.split(r"(\{[^{}]*\})", text)
    values = [*values, *[""] * len(parts)]
    return [Value("number", values[at // 2]) if at % 2 else part for at, part in enumerate(parts)]


def _stream_pieces(node: tree_sitter.Node) -> list[str | Value]:
    operands: list[tree_sitter.Node] = []
    current = node
    while _is_shift(current):
        left, right = current.child_by_field_name("left"), current.child_by_field_name("right")
        if left is None or right is None:
            return []
        operands.append(right)
        current = left
    if _source(current) not in _STREAMS:
        return []
    pieces: list[str | Value] = []
    for operand in reversed(operands):
        text = _source(operand)
        if _is_text(operand):
            pieces.append(_literal(operand))
        elif operand.type == "char_literal":
            inside = text.partition("'")[2].removesuffix("'")
            pieces.append(_ESCAPES.get(inside[1:2], "") if inside.startswith("\\") else inside)
        elif text in _LINE_ENDS:
            pieces.append("\n")
        elif not _MANIPULATORS.match(text):
            pieces.append(Value("text" if '"' in text else "number", text))
    return pieces


def _joined(printed: Iterable[_Printed], above: Parents) -> Iterator[_Printed]:
    """Neighbouring statements that print one line together become one."""
    held: _Printed | None = None
    for pieces, node in printed:
        if held is not None:
            last = held[0][-1] if held[0] else ""
            open_line = not (isinstance(last, str) and last.endswith("\n"))
            if open_line and _follows(_statement(held[1], above), _statement(node, above), above):
                held = (held[0] + pieces, node)
                continue
            yield held
        held = (pieces, node)
    if held is not None:
        yield held


def _statement(node: tree_sitter.Node, above: Parents) -> tree_sitter.Node:
    while node.id in above and node.type != "expression_statement":
        node = above[node.id]
    return node


def _follows(first: tree_sitter.Node, second: tree_sitter.Node, above: Parents) -> bool:
    """Whether two statements stand one behind the other."""
    return (
        first.id in above and second.id in above and above[first.id] == above[second.id]
        and first.next_named_sibling == second
    )  # fmt: skip


def _split(pieces: list[str | Value], node: tree_sitter.Node) -> Iterator[_Printed]:
    line: list[str | Value] = []
    for piece in pieces:
        if isinstance(piece, Value):
            line.append(piece)
            continue
        first, *others = piece.split("\n")
        line.append(first)
        for other in others:
            yield line, node
            line = [other]
    yield line, node


def _merged(pieces: Iterable[str | Value]) -> tuple[str | Value, ...]:
    out: list[str | Value] = []
    for piece in pieces:
        if isinstance(piece, str) and out and isinstance(out[-1], str):
            out[-1] += piece
        elif piece != "":
            out.append(piece)
    return tuple(out)


Parents = dict[int, tree_sitter.Node]
"""By a node's id, the node around it: to ask the tree costs as much as the node has siblings, and levels above it."""


def parents(root: tree_sitter.Node) -> Parents:
    return {child.id: node for node in walk(root) for child in node.children}


def _ancestors(node: tree_sitter.Node, above: Parents) -> Iterator[tuple[tree_sitter.Node, tree_sitter.Node]]:
    """(child, parent) from the node outwards."""
    while node.id in above:
        yield node, above[node.id]
        node = above[node.id]


def _enclosing(node: tree_sitter.Node, above: Parents) -> str:
    return next((function_name(up) or "" for _, up in _ancestors(node, above) if up.type == "function_definition"), "")


def _looped(node: tree_sitter.Node, above: Parents) -> bool:
    for _, up in _ancestors(node, above):
        if up.type == "function_definition":
            return False
        if up.type in ("for_statement", "while_statement", "do_statement", "for_range_loop"):
            return True
    return False


def _guard(node: tree_sitter.Node, above: Parents) -> str | None:
    inside_else = False
    for child, up in _ancestors(node, above):
        inside_else = inside_else or child.type in ("preproc_else", "preproc_elif")
        if up.type not in ("preproc_ifdef", "preproc_if"):
            continue
        if not inside_else:
            head = _source(up).split("\n", 1)[0]
            found = re.match(r"#\s*(?:ifdef\s+(\w+)|if\s+defined\s*\(?\s*(\w+)|if\s+([A-Za-z_]\w*)\s*$)", head)
            name: str | None = next(filter(None, found.groups()), None) if found else None
            if name and name not in _ALWAYS_DEFINED:
                return name
        inside_else = False
    return None
