"""Texts that a sound task must reject, derived from the region's own syntax tree.

    broken     the first token is `@`: must not build, else the region is not what gets compiled
    null       functions return at once; in a part of a function, stores to what outlives it are gone
    constant   stores to what outlives the region store a constant
    trap       functions abort at once

A probe that cannot be derived is None, with the reason; the author of a task may give texts instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from kernelwright.source import find_functions, function_name, parse, walk

KINDS = ("broken", "null", "constant", "trap")
ATOMIC_IDENTITIES = {"atomicAdd": "0", "atomicSub": "0", "atomicOr": "0", "atomicXor": "0"}
STORES = ("assignment_expression", "update_expression")
MAX_FUNCTIONS = 8
"""Functions of one region that are probed one at a time; public suites have files with dozens."""


@dataclass(frozen=True)
class Probe:
    """One text for one region; `target` names the function that was changed, or the region."""

    kind: str
    target: str
    text: str | None
    reason: str = ""
    """Why there is no text."""


def derive(kind: str, text: str, language: str) -> list[Probe]:
    """The probes of a kind for a region's text. A region of several functions gives one probe for each, the kernels
    first, at most eight; functions that are only called by these are left alone."""
    if kind == "broken":
        return [Probe(kind, "region", "@ " + text)]
    data = text.encode(errors="surrogateescape")
    functions = find_functions(data, language)
    kernels = [function for function in functions if function.kernel]
    probed = (kernels or functions)[:MAX_FUNCTIONS]
    if kind == "constant":
        return [_constant(data, language, function.name, function.start, function.end) for function in probed] or [
            _constant(data, language, "region", 0, len(data))
        ]
    if not probed:
        return [_part(kind, data, language)]
    found = []
    for function in probed:
        at = function.body_start + 1
        head = data[function.start : function.body_start]
        entry = _entry(kind, function.kernel or b"__device__" in head, _returns_void(data, language, function.start))
        found.append(Probe(kind, function.name, (data[:at] + entry + data[at:]).decode(errors="surrogateescape")))
    return found


def _entry(kind: str, device: bool, void: bool) -> bytes:
    if kind == "trap":
        return b' asm volatile("trap;"); ' if device else b" __builtin_trap(); "
    return b" { volatile int kw = 1; if (kw) return" + (b"; } " if void else b" {}; } ")


def _returns_void(data: bytes, language: str, start: int) -> bool:
    for node in walk(parse(data, language).root_node):
        if node.type == "function_definition" and node.start_byte >= start and function_name(node):
            kind = node.child_by_field_name("type")
            declarator = node.child_by_field_name("declarator")
            return (
                kind is not None
                and kind.text == b"void"
                and declarator is not None
                and declarator.type == "function_declarator"
            )
    return True


def _part(kind: str, data: bytes, language: str) -> Probe:
    """A region that is part of a function."""
    if kind == "trap":
        entry = b"__builtin_trap();\n" if language == "cpp" else b'asm volatile("trap;");\n'
        return Probe(kind, "region", (entry + data).decode(errors="surrogateescape"))
    return _edited(kind, "region", data, [(store.start, store.end, b"(void)0") for store in _stores(data, language)])


def _constant(data: bytes, language: str, name: str, start: int, end: int) -> Probe:
    stores = [store for store in _stores(data, language) if start <= store.start < end]
    return _edited("constant", name, data, [(*store.value, store.constant) for store in stores if store.value])


def _edited(kind: str, target: str, data: bytes, edits: list[tuple[int, int, bytes]]) -> Probe:
    if not edits:
        return Probe(kind, target, None, "no store to anything that outlives the region was found")
    last = len(data)
    for start, end, text in sorted(edits, reverse=True):
        if end <= last:  # a store inside another one's right side goes with it
            data, last = data[:start] + text + data[end:], start
    return Probe(kind, target, data.decode(errors="surrogateescape"))


@dataclass(frozen=True)
class _Store:
    """A store to something that outlives the region: its expression, the value stored, and a constant to put there."""

    start: int
    end: int
    value: tuple[int, int] | None
    constant: bytes = b"1"


def _stores(data: bytes, language: str) -> list[_Store]:
    """A part of a function is parsed inside a function of ours, its offsets counted from its own start."""
    before = b"" if find_functions(data, language) else b"void kw_probe() {\n"
    root = parse(before + data + (b"\n}" if before else b""), language).root_node
    local = set(_declared(root))
    return [store for node in walk(root) if (store := _store(node, local, len(before)))]


def _store(node: Node, local: set[bytes], before: int) -> _Store | None:
    start, end = node.start_byte - before, node.end_byte - before
    if node.type in STORES and not _inside_for_header(node):
        target = node.child_by_field_name("left") or node.child_by_field_name("argument")
        right = node.child_by_field_name("right")
        if target is not None and _outlives(target, local):
            return _Store(start, end, (right.start_byte - before, right.end_byte - before) if right else None)
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    name = (
        function.text.decode(errors="replace") if node.type == "call_expression" and function and function.text else ""
    )
    if name in ATOMIC_IDENTITIES and arguments is not None and len(arguments.named_children) == 2:
        value = arguments.named_children[1]
        return _Store(
            start, end, (value.start_byte - before, value.end_byte - before), ATOMIC_IDENTITIES[name].encode()
        )
    return None


def _inside_for_header(node: Node) -> bool:
    parent = node.parent
    while parent is not None and parent.type in ("comma_expression", "parenthesized_expression"):
        node, parent = parent, parent.parent
    return parent is not None and parent.type == "for_statement" and parent.child_by_field_name("body") != node


def _declared(root: Node) -> Iterator[bytes]:
    """Names of local variables that are values, not pointers, references or arrays."""
    for node in walk(root):
        if node.type in ("init_declarator", "declaration"):
            declarator = node.child_by_field_name("declarator")
            if declarator is not None and declarator.type == "identifier" and declarator.text:
                yield declarator.text


def _outlives(target: Node, local: set[bytes]) -> bool:
    """Whether a store to `target` may be seen after the region: through a pointer, an index, or a name not local."""
    if target.type == "identifier":
        return target.text not in local
    return target.type in ("subscript_expression", "pointer_expression", "field_expression", "parenthesized_expression")
