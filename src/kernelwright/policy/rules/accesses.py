"""Which array elements the body of a loop names, and whether two iterations can meet on one.

Two arrays of different names are taken not to overlap; every rule that rests on this says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from kernelwright.policy.rules.names import Names
from kernelwright.policy.rules.syntax import (
    below,
    child,
    flat,
    identifiers,
    operator,
    strip,
    text_of,
)

NO_OVERLAP = "arrays of different names do not overlap, nor do the rows of one"


@dataclass(frozen=True)
class Access:
    """One array element that a body names: the array, its subscripts from the outermost in, and whether it is stored."""

    array: str
    subscripts: tuple[Node, ...]
    stored: str
    """The operator that stores it (`=`, `+=`, …); empty for a read."""

    @property
    def element(self) -> str:
        return "".join(f"[{flat(subscript)}]" for subscript in self.subscripts)


def accesses(body: Node) -> list[Access] | None:
    """Every array access of a body; None where one cannot be read, as with `*p` or `s->a[i]`."""
    found = []
    if next(below(body, "pointer_expression"), None) is not None:
        return None
    for node in below(body, "subscript_expression"):
        if (
            node.parent is not None
            and node.parent.type == "subscript_expression"
            and child(node.parent, "argument") == node
        ):
            continue
        subscripts, root = _subscripts(node)
        if root.type != "identifier":
            return None
        found.append(Access(text_of(root), subscripts, _store_operator(node)))
    return found


def _subscripts(node: Node) -> tuple[tuple[Node, ...], Node]:
    parts: list[Node] = []
    while node.type == "subscript_expression":
        indices, argument = child(node, "indices"), child(node, "argument")
        index = indices.named_children[0] if indices is not None and indices.named_child_count == 1 else node
        parts.insert(0, index)
        if argument is None or index is node:
            break
        node = strip(argument)
    return tuple(parts), node


def _store_operator(node: Node) -> str:
    above = node.parent
    while above is not None and above.type in ("parenthesized_expression", "field_expression"):
        node, above = above, above.parent
    if above is not None and above.type == "update_expression":
        return "+="
    if above is not None and above.type == "assignment_expression" and child(above, "left") == node:
        return operator(above)
    return ""


def stride(access: Access, variable: str) -> str:
    """How an element moves with a variable: `none`, `unit` (the last subscript is v or v plus something), or `far`."""
    inside = [variable in identifiers(subscript) for subscript in access.subscripts]
    if not any(inside):
        return "none"
    return "unit" if not any(inside[:-1]) and _unit(access.subscripts[-1], variable) else "far"


def _unit(subscript: Node, variable: str) -> bool:
    subscript = strip(subscript)
    if text_of(subscript) == variable:
        return True
    left, right = child(subscript, "left"), child(subscript, "right")
    if subscript.type != "binary_expression" or operator(subscript) not in ("+", "-") or left is None or right is None:
        return False
    if variable in identifiers(left):
        return variable not in identifiers(right) and _unit(left, variable)
    return operator(subscript) == "+" and _unit(right, variable)


def one_element_each(found: list[Access], names: Names) -> bool:
    """Whether each stored array is named by one element only, and its memory by no other name."""
    stored = {names.memory(access.array) for access in found if access.stored}
    elements = {(access.array, access.element) for access in found if names.memory(access.array) in stored}
    return len(elements) == len(stored)


def moves(access: Access, variable: str, others: set[str]) -> bool:
    """Whether different values of `variable` give different elements, whatever the values of `others` are.

    Of `a[v * n + j]` it is believed: a row's elements do not reach into the next.
    """
    if leads(access, variable):
        return True
    return stride(access, variable) == "unit" and not identifiers(access.subscripts[-1]) & others


def leads(access: Access, variable: str) -> bool:
    """A subscript that is the variable alone, or the variable times something plus something: `a[v][j]`, `a[v * n + j]`."""
    word = re.escape(variable)
    for subscript in access.subscripts:
        text = flat(subscript)
        product = rf"\(?(?:{word}\*[\w.]+|[\w.]+\*{word})\)?"
        if text == variable or (re.fullmatch(rf"{product}(?:\+.*)?|.*\+{product}", text) and text.count(variable) >= 1
                                and len(re.findall(rf"\b{word}\b", text)) == 1):  # fmt: skip
            return True
    return False
