"""Rules about storage: nothing in a region outlives a call, unless it is constant or the original had it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter

from kernelwright.screen.context import Change, Finding
from kernelwright.screen.scope import declarator_names, function_declarator, text
from kernelwright.source import walk

_ADVICE = "keep it in a local variable, or make it constexpr"
_LITERALS = {
    "number_literal", "char_literal", "initializer_list", "unary_expression", "binary_expression", "true", "false",
    "parenthesized_expression", "sizeof_expression", "init_declarator", "initializer_pair", "subscript_designator",
    "field_designator", "conditional_expression", "null", "nullptr", "concatenated_string", "string_literal",
}  # fmt: skip
_PLAIN_TYPE = re.compile(
    r"(?:(?:unsigned|signed|long|short|int|char|float|double|bool|size_t|u?int\d+_t|uint|uchar|ushort|ulong|half|__half|__half2"
    r"|half2|__nv_bfloat16|(?:float|double|u?int|u?char|u?short|u?long)[1234]|__m(?:128|256|512)[id]?) ?)+"
)
"""Types whose constants lie in read-only memory: no constructors, nothing on the heap."""


def storage_ends_with_the_call(change: Change) -> Iterator[Finding]:
    """No variables at namespace scope, static members or static locals but constants."""
    for node in change.nodes("declaration", "field_declaration"):
        outermost = change.level != "block" and _at_namespace_scope(node, change.new.root)
        if not (outermost or _is_static(node)) or _is_constant(change, node) or "extern" in _specifiers(node):
            continue
        for name in _variables(node):
            if not _original_had(change, name):
                yield Finding(change.new.offset(node), f"the variable {name!r} outlives a call", _ADVICE)


def statics_are_seen(change: Change) -> Iterator[Finding]:
    """Every `static` is one that the syntax tree knows, so that none hides in what could not be parsed."""
    seen = sum(1 for node in walk(change.new.root) if node.type == "static" and not node.is_named)
    written = [
        token for token in change.new.tokens if token.text == "static" and token not in change.new.shared_statics
    ]
    if len(written) > max(seen, change.old.names["static"]):
        at = written[0].at
        yield Finding(at, "a static could not be read in its place", _ADVICE)


def nothing_mutable_in_constants(change: Change) -> Iterator[Finding]:
    """`mutable` members change inside constants; a lambda's `mutable` is its own."""
    for node in change.nodes("field_declaration", "declaration"):
        if "mutable" in _specifiers(node) and not change.original_has("mutable"):
            yield Finding(
                change.new.offset(node), "a mutable member can change inside a constant", "leave mutable away"
            )


def _at_namespace_scope(node: tree_sitter.Node, root: tree_sitter.Node) -> bool:
    parent = node.parent
    while parent is not None and parent.type in (
        "template_declaration", "declaration_list", "namespace_definition", "linkage_specification",
    ) and parent.id != root.id:  # fmt: skip
        parent = parent.parent
    return parent is None or parent.id == root.id


def _specifiers(node: tree_sitter.Node) -> set[str]:
    kinds = ("type_qualifier", "storage_class_specifier")
    return {text(child) for child in node.children if child.type in kinds}


def _is_static(node: tree_sitter.Node) -> bool:
    return bool(_specifiers(node) & {"static", "thread_local", "__managed__"})


def _variables(node: tree_sitter.Node) -> Iterator[str]:
    for declarator in node.children_by_field_name("declarator"):
        if function_declarator(declarator) is None:
            yield from (text(name) for name in declarator_names(declarator))


def _original_had(change: Change, name: str) -> bool:
    return any(
        name in _variables(node) and (_is_static(node) or _at_namespace_scope(node, change.old.root))
        for node in change.old_nodes("declaration", "field_declaration")
    )


def _is_constant(change: Change, node: tree_sitter.Node) -> bool:
    """Whether nothing can change it and nothing runs to make it: constexpr, or const made of literals and constants."""
    specifiers = _specifiers(node)
    if "constexpr" in specifiers:
        return True
    if not specifiers & {"const", "__constant__"} or not _PLAIN_TYPE.fullmatch(text(node.child_by_field_name("type"))):
        return False
    return all(_literal(change, declarator) for declarator in node.children_by_field_name("declarator"))


def _literal(change: Change, declarator: tree_sitter.Node) -> bool:
    value = declarator.child_by_field_name("value")
    inner = declarator.child_by_field_name("declarator")
    if declarator.type != "init_declarator" or value is None or inner is None:
        return False
    if "pointer_declarator" in {node.type for node in walk(inner)}:
        return False
    return all(_constant_piece(change, node) for node in walk(value) if node.is_named)


def _constant_piece(change: Change, node: tree_sitter.Node) -> bool:
    if node.type in ("identifier", "type_identifier"):
        declared = change.new_names.local.get(node.id)
        if declared is not None:
            return (
                bool(_specifiers(declared) & {"constexpr"})
                or declared.type.endswith("enumerator")
                or (declared.parent is not None and declared.parent.type == "template_parameter_list")
            )
        return text(node) in change.outside.macros or change.outside.is_constant(text(node)) or text(node).isupper()
    return node.type in _LITERALS or node.type.endswith(("_type", "_content", "_descriptor", "_specifier"))


def constants_stay_constant(change: Change) -> Iterator[Finding]:
    """A constant that outlives a call is not cast to something that could be written."""
    lasting = {
        name
        for node in change.nodes("declaration", "field_declaration")
        if _is_static(node) or (change.level != "block" and _at_namespace_scope(node, change.new.root))
        for name in _variables(node)
    }
    for node in change.nodes("cast_expression", "call_expression", "gnu_asm_expression"):
        kind = text(node.child_by_field_name("type") or node.child_by_field_name("function"))
        pointer = "*" in kind and "const " not in kind and (node.type == "cast_expression" or "_cast" in kind)
        if not (pointer or kind.startswith("const_cast") or node.type == "gnu_asm_expression"):
            continue
        named = next(
            (text(inner) for inner in walk(node) if inner.type == "identifier" and text(inner) in lasting), None
        )
        if named is not None:
            yield Finding(change.new.offset(node), f"it casts the constant {named!r} to something that could be written",
                          "read it as it is")  # fmt: skip
