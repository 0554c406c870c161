"""Expressions around a pointer's name: what it points at, which element is meant, which call it is handed to.

Pure questions to the syntax tree; `kernelwright.screen.buffers` follows pointers through a text with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter

from kernelwright.screen.scope import declarator_names, text
from kernelwright.source import walk

POINTER_CASTS = re.compile(
    r"(?:reinterpret|static|const)_cast|(?:__builtin_)?assume_aligned|__cvta_\w+|launder|u?int(?:ptr|64)_t|size_t|ptrdiff_t|long"
)
_COMPARISONS = {"==", "!=", "<", ">", "<=", ">=", "&&", "||", "and", "or", "not_eq"}
_VALUE_ONLY = {
    "lambda_capture_specifier", "condition_clause", "unary_expression", "sizeof_expression", "decltype",
    "expression_statement", "if_statement", "for_statement", "while_statement", "do_statement",
}  # fmt: skip


def ancestors(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def parameters(definition: tree_sitter.Node) -> list[tree_sitter.Node]:
    found = next((node for node in walk(definition) if node.type == "parameter_list"), None)
    return [child for child in found.named_children if child.type.endswith("declaration")] if found is not None else []


def pointer_names(parameter: tree_sitter.Node) -> list[str]:
    """The names of a parameter that is a pointer or an array, or could be one by its template's argument."""
    declarator, kind = parameter.child_by_field_name("declarator"), parameter.child_by_field_name("type")
    if declarator is None:
        return []
    generic = kind is not None and kind.type in ("type_identifier", "placeholder_type_specifier")
    if not generic and not {"pointer_declarator", "array_declarator"} & {n.type for n in walk(declarator)}:
        return []
    return [text(name) for name in declarator_names(declarator)]


def declared_type(declarator: tree_sitter.Node) -> str:
    return text(declarator.parent.child_by_field_name("type")) if declarator.parent is not None else ""


def callee(call: tree_sitter.Node) -> str:
    function = text(call.child_by_field_name("function"))
    return re.split(r"::|\.|->", re.sub(r"<.*", "", function, flags=re.DOTALL))[-1].strip()


def step_to_base(node: tree_sitter.Node) -> tree_sitter.Node | None:
    """One step from an address expression towards the name that it starts from."""
    if node.type == "parenthesized_expression":
        return node.named_children[0] if node.named_children else None
    if node.type == "cast_expression":
        return node.child_by_field_name("value")
    if node.type == "binary_expression" and text(node.child_by_field_name("operator")) in ("+", "-"):
        return node.child_by_field_name("left")
    if node.type == "pointer_expression" and text(node).startswith("&"):
        inner = node.child_by_field_name("argument")
        return (
            inner.child_by_field_name("argument")
            if inner is not None and inner.type == "subscript_expression"
            else None
        )
    if node.type == "call_expression" and POINTER_CASTS.fullmatch(callee(node)):
        arguments = node.child_by_field_name("arguments")
        return arguments.named_children[0] if arguments is not None and arguments.named_children else None
    return None


def keeps_pointer(node: tree_sitter.Node) -> bool:
    """Whether an expression around a pointer is still that pointer, moved or with another type."""
    if node.type == "call_expression":
        return bool(POINTER_CASTS.fullmatch(callee(node)))
    if node.type == "pointer_expression":
        return text(node).startswith("&")
    return node.type in (
        "parenthesized_expression", "cast_expression", "binary_expression", "argument_list", "subscript_expression",
        "conditional_expression", "comma_expression",
    )  # fmt: skip


def counted(node: tree_sitter.Node) -> tree_sitter.Node | None:
    """The `++` or `--` of a name or element; the grammar reads `!n++` as `(!n)++`, which no compiler does."""
    parent = node.parent
    while parent is not None and parent.type == "unary_expression":
        parent = parent.parent
    return parent if parent is not None and parent.type == "update_expression" else None


def value_only(node: tree_sitter.Node) -> bool:
    """Whether a pointer around `node` is only compared, tested or asked for its alignment."""
    current = node
    while (parent := current.parent) is not None:
        if parent.type == "conditional_expression" and parent.child_by_field_name("condition") == current:
            return True
        if parent.type == "binary_expression":
            operator, right = text(parent.child_by_field_name("operator")), parent.child_by_field_name("right")
            if operator in _COMPARISONS:
                return True
            if operator in ("%", "&") and right is not None and right.type == "number_literal" and current != right:
                return True
            if operator not in ("+", "-"):
                return False
        if not keeps_pointer(parent) or parent.type == "subscript_expression":
            return parent.type in _VALUE_ONLY
        current = parent
    return False


def element(node: tree_sitter.Node) -> tuple[tree_sitter.Node | None, str]:
    """The element expression around a pointer's name (`p[i]`, `*(p + i)`, `p->x`), with its index as text."""
    current = node
    while current.parent is not None:
        parent = current.parent
        if parent.type == "subscript_expression" and parent.child_by_field_name("argument") == current:
            return _whole_element(parent), "".join(text(parent)[len(text(current)) :].split())
        if parent.type == "pointer_expression" and text(parent).startswith("*"):
            return _whole_element(parent), "".join(text(current).split())
        if parent.type == "field_expression" and "->" in text(parent)[len(text(current)) :][:3]:
            return parent, ""
        if parent.type == "subscript_argument_list" and parent.parent is not None:
            return parent.parent, "".join(text(parent.parent).split())
        if parent.type == "update_expression":
            current = parent
            continue
        if not keeps_pointer(parent) or parent.type in ("pointer_expression", "subscript_expression"):
            return None, ""
        added = parent.type == "binary_expression" and text(parent.child_by_field_name("operator")) == "+"
        if parent.type == "binary_expression" and not added and step_to_base(parent) != current:
            return None, ""
        current = parent
    return None, ""


def _whole_element(node: tree_sitter.Node) -> tree_sitter.Node:
    """`p[i]` of `p[i][j]`: an array of arrays has its elements at the end."""
    while (parent := node.parent) is not None and (
        parent.type == "subscript_expression" and parent.child_by_field_name("argument") == node
    ):
        node = parent
    return node


def call_around(node: tree_sitter.Node) -> tuple[tree_sitter.Node, str, int] | None:
    """The call that a pointer is handed to, its name, and the argument's position."""
    current = node
    while (parent := current.parent) is not None and keeps_pointer(parent):
        call = parent.parent
        if parent.type == "argument_list" and call is not None and not POINTER_CASTS.fullmatch(callee(call)):
            position = [child.id for child in parent.named_children].index(current.id)
            return (call, callee(call), position) if call.type == "call_expression" else None
        current = parent
    statement = next((around for around in ancestors(node) if around.type == "gnu_asm_expression"), None)
    return (statement, "asm", 0) if statement is not None else None
