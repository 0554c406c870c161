"""The rule about the object around a region: code in a function of a class reaches all members by their bare names.

A timer that is stopped, a number of repetitions that is set or a stored result that is overwritten is then a call or an
assignment of a name that nothing in the function declares. So a region names the members that the original names, and sizes.
"""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter

from kernelwright.screen.calls import change_at, is_plain_constant
from kernelwright.screen.context import Change, Finding, Outside
from kernelwright.screen.scope import HOLE, declarator_names, function_declarator, text
from kernelwright.source import walk

_CLASSES = ("class_specifier", "struct_specifier")
_ADVICE = "use what the original region uses of its object"


def names_members_as_the_original_does(change: Change) -> Iterator[Finding]:
    """No member of the region's own object that the original does not name, numbers that are only read apart."""
    members = _members(change)
    if not members:
        return
    through_this = [node for node in change.nodes("this") if not _names_this(change)]
    for node in through_this:
        yield Finding(change.new.offset(node), "it uses 'this', which the original region does not", _ADVICE)
    reached = change.new_names.members if _names_this(change) else []
    for node in (*change.new_names.free, *reached):
        name = text(node)
        if (
            name in members
            and not change.original_has(name)
            and not _is_read_number(node, members[name], change.outside)
        ):
            yield Finding(
                change.new.offset(node),
                f"it uses {name!r} of the object around it, which the original region does not name",
                _ADVICE,
            )


def _names_this(change: Change) -> bool:
    return any(node.type == "this" for node in walk(change.old.root))


def _is_read_number(node: tree_sitter.Node, declared: tree_sitter.Node, outside: Outside) -> bool:
    declarators = declared.children_by_field_name("declarator")
    is_function = declared.type == "function_definition" or any(map(function_declarator, declarators))
    return not is_function and is_plain_constant(declared, outside) and change_at(node, True) is None


def _members(change: Change) -> dict[str, tree_sitter.Node]:
    """Members of the classes that the region's functions belong to, and of what these derive from, as far as in sight;
    without those that a local variable hides."""
    found: dict[str, tree_sitter.Node] = {}
    classes = {name: [one.node for one in declared] for name, declared in change.outside.declared("type").items()}
    waiting, seen = list(_owners(change)), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in classes.get(name, []):
            for member, declared in _declared_in(node):
                found.setdefault(member, declared)
            waiting += _bases(node)
    hidden = set(change.outside.local_variables) if change.level == "block" else set[str]()
    return {name: node for name, node in found.items() if name not in hidden | seen}  # a class's own name is no member


def _owners(change: Change) -> Iterator[str]:
    """The names of the classes whose functions the region is, holds, or is a part of."""
    around = next(
        (node for node in walk(change.outside.code.tree.root_node) if text(node) == HOLE and not node.children), None
    )
    while around is not None:
        if around.type in _CLASSES:
            yield text(around.child_by_field_name("name"))
        elif around.type == "function_definition":
            yield from _scope_of(around)
        around = around.parent
    for node in change.nodes("function_definition"):
        yield from _scope_of(node)


def _scope_of(definition: tree_sitter.Node) -> Iterator[str]:
    """`A` of a definition of `A::f` or `ns::A<T>::f`."""
    declarator = definition.child_by_field_name("declarator")
    for name in declarator_names(declarator) if declarator is not None else ():
        while name.type == "qualified_identifier":
            inner = name.child_by_field_name("name")
            scope = name.child_by_field_name("scope")
            yield text(
                scope.child_by_field_name("name") if scope is not None and scope.type == "template_type" else scope
            )
            if inner is None:
                return
            name = inner


def _declared_in(node: tree_sitter.Node) -> Iterator[tuple[str, tree_sitter.Node]]:
    body = node.child_by_field_name("body") if node.type in _CLASSES else None
    for member in body.named_children if body is not None else ():
        inner = member.named_children[-1] if member.type == "template_declaration" and member.named_children else member
        for declarator in inner.children_by_field_name("declarator"):
            for name in declarator_names(declarator):
                yield text(name), inner


def _bases(node: tree_sitter.Node) -> Iterator[str]:
    clause = next((child for child in node.children if child.type == "base_class_clause"), None)
    for inner in walk(clause) if clause is not None else ():
        if inner.type == "type_identifier":
            yield text(inner)
