"""What running a piece of code may change, from its text alone: unknown calls are taken to change everything."""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from kernelwright.policy.rules.syntax import (
    DIRECTIVES,
    child,
    identifiers,
    is_math,
    operator,
    root_name,
    strip,
    text_of,
)


@dataclass
class Effects:
    """What running a piece of code may change."""

    modified: set[str] = field(default_factory=set)
    """Variables assigned, counted up, declared, or whose address is given away."""
    stored: set[str] = field(default_factory=set)
    """Arrays and pointers whose elements are written."""
    opaque: bool = False
    """It holds a call, an assembler statement or a store that could change anything."""
    jumps: set[str] = field(default_factory=set)

    @property
    def touched(self) -> set[str]:
        return self.modified | self.stored


_JUMPS = {"break_statement": "break", "return_statement": "return", "goto_statement": "goto", "labeled_statement": "goto",
          "continue_statement": "continue", "co_return_statement": "return", "throw_statement": "return"}  # fmt: skip
_OPAQUE = frozenset({"gnu_asm_expression", "lambda_expression", "new_expression", "delete_expression", "preproc_if",
                     "preproc_ifdef", "try_statement", "co_await_expression"})  # fmt: skip


def effects(node: Node) -> Effects:
    """What `node` may change, from its text alone: unknown calls are taken to change everything."""
    found = Effects()
    stack = [node]
    while stack:
        current = stack.pop()
        _note(current, found)
        if current.type not in DIRECTIVES:
            stack.extend(current.children)
    return found


def _note(node: Node, found: Effects) -> None:
    if node.type == "assignment_expression":
        _note_target(child(node, "left"), found)
    elif node.type == "update_expression":
        _note_target(child(node, "argument"), found)
    elif node.type == "pointer_expression" and operator(node) == "&":
        found.modified |= identifiers(node)
        found.stored |= identifiers(node)
    elif node.type == "call_expression" and not is_math(node):
        found.opaque = True
    elif node.type in ("init_declarator", "declaration", "for_range_loop"):
        found.modified |= _declared_names(node)
        found.opaque |= _binds(node)
    elif node.type == "binary_expression" and operator(node) == ">>" and _is_statement(node):
        found.modified |= identifiers(node)
    elif node.type in _OPAQUE:
        found.opaque = True
    elif node.type in _JUMPS:
        found.jumps.add(_JUMPS[node.type])


def _binds(node: Node) -> bool:
    """Whether a declaration gives memory a second name that could be written through."""
    reference = any(inner.type == "reference_declarator" for inner in node.children)
    if node.type == "init_declarator":
        return reference and node.parent is not None and not _const(node.parent)
    return reference and node.type == "for_range_loop" and not _const(node)


def _const(node: Node) -> bool:
    return any(part.type == "type_qualifier" and part.text == b"const" for part in node.children)


def _is_statement(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "expression_statement"


def _note_target(target: Node | None, found: Effects) -> None:
    name = root_name(target) if target is not None else None
    if target is None or name is None:
        found.opaque = True
    elif strip(target).type == "identifier":
        found.modified.add(name)
    else:
        found.stored.add(name)


def _declared_names(node: Node) -> set[str]:
    names = set()
    for declarator in node.children_by_field_name("declarator"):
        inner: Node | None = declarator
        while inner is not None and inner.type != "identifier":
            step = child(inner, "declarator")
            inner = (
                step if step is not None else next((c for c in inner.named_children if c.type == "identifier"), None)
            )
        if inner is not None:
            names.add(text_of(inner))
    return names
