"""What one file declares: variables and parameters, type aliases, macros that stand for a value, functions.

Headers are not read. A name that stands for two different things is known for neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from kernelwright.policy.rules.syntax import Site, below, child, text_of

_LEAVES = frozenset({"init_declarator", "pointer_declarator", "array_declarator", "reference_declarator"})
_CONTAINERS = frozenset({"translation_unit", "namespace_definition", "declaration_list", "linkage_specification",
                         "template_declaration", "preproc_ifdef", "preproc_if", "preproc_else"})  # fmt: skip


@dataclass(frozen=True)
class Declared:
    """One variable or parameter: its base type's text, how many pointer and array levels stand on it, and where."""

    name: str
    base: str
    pointers: int
    arrays: int
    qualifiers: frozenset[str]
    """Of the base type, the storage class and the declarator: `const`, `static`, `__shared__`, `__restrict__`, …"""
    node: Node
    """The declaration or parameter."""
    declarator: Node
    """The outermost declarator, an initial value included."""
    parameter: bool
    reference: bool

    @property
    def levels(self) -> int:
        return self.pointers + self.arrays

    @property
    def value(self) -> Node | None:
        return child(self.declarator, "value") if self.declarator.type == "init_declarator" else None


def declarations(node: Node) -> Iterator[Declared]:
    """All that is declared at or below `node`, function declarations left out."""
    for found in below(
        node, "declaration", "parameter_declaration", "optional_parameter_declaration", "for_range_loop"
    ):
        yield from declared_by(found)


def declared_by(node: Node) -> Iterator[Declared]:
    kind = child(node, "type")
    if kind is None:
        return
    words = {text_of(c) for c in node.children if c.type in ("type_qualifier", "storage_class_specifier")}
    for outer in node.children_by_field_name("declarator"):
        levels, qualifiers, name = _unfold(outer)
        if name is None:
            continue
        yield Declared(name, re.sub(r"\s+", " ", text_of(kind)), levels.count("*"), levels.count("["),
                       frozenset(words | qualifiers), node, outer, "parameter" in node.type, "&" in levels)  # fmt: skip


def _unfold(node: Node | None) -> tuple[str, set[str], str | None]:
    levels, qualifiers = "", set[str]()
    while node is not None and node.type != "identifier":
        if node.type not in _LEAVES:
            return levels, qualifiers, None
        levels += {"pointer_declarator": "*", "array_declarator": "[", "reference_declarator": "&"}.get(node.type, "")
        qualifiers |= {text_of(c) for c in node.children if c.type == "type_qualifier"}
        inner = child(node, "declarator")
        node = inner if inner is not None else next((c for c in node.named_children if c.type == "identifier"), None)
    return levels, qualifiers, text_of(node) if node is not None else None


class FileNames:
    """The names of a file's outermost level: type aliases, macros that stand for a value, globals, functions."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.aliases: dict[str, str | None] = {}
        self.globals: dict[str, Declared | None] = {}
        self.returns: dict[str, str | None] = {}
        """Function → the base type it returns by value; None where overloads differ."""
        self.by_value: dict[str, bool] = {}
        """Function → whether no parameter of any overload is a reference."""
        self.macros: set[str] = set()
        stack = [site.root]
        while stack:
            node = stack.pop()
            self._read(node)
            if node.type in _CONTAINERS:
                stack.extend(reversed(node.children))

    def _read(self, node: Node) -> None:
        if node.type in ("preproc_def", "preproc_function_def"):
            self._macro(node)
        elif node.type == "type_definition":
            kind, name = child(node, "type"), child(node, "declarator")
            if kind is not None and name is not None and name.type == "type_identifier":
                _once(self.aliases, text_of(name), text_of(kind))
        elif node.type == "alias_declaration":
            kind, name = child(node, "type"), child(node, "name")
            if kind is not None and name is not None:
                _once(self.aliases, text_of(name), text_of(kind))
        elif node.type == "function_definition":
            self._function(node)
        elif node.type == "declaration":
            self._function(node)
            for declared in declared_by(node):
                known = self.globals.get(declared.name, declared)
                same = known is not None and (known.base, known.levels) == (declared.base, declared.levels)
                self.globals[declared.name] = declared if same else None

    def _macro(self, node: Node) -> None:
        name, value = child(node, "name"), child(node, "value")
        if name is None:
            return
        self.macros.add(text_of(name))
        if node.type == "preproc_def" and value is not None:
            plain = text_of(value).split("//")[0].split("/*")[0].strip()
            _once(self.aliases, text_of(name), plain.removeprefix("(").removesuffix(")").strip())

    def _function(self, node: Node) -> None:
        kind, declarator = child(node, "type"), child(node, "declarator")
        if kind is not None and declarator is not None and declarator.type == "function_declarator":
            name = child(declarator, "declarator")
            if name is not None and name.type == "identifier":
                _once(self.returns, text_of(name), text_of(kind))
                values = "&" not in text_of(declarator)
                self.by_value[text_of(name)] = values and self.by_value.get(text_of(name), True)

    def base(self, name: str) -> str:
        """The type or value that a name stands for, aliases and macros followed."""
        for _ in range(8):
            known = self.aliases.get(name)
            if known is None:
                return name
            name = known
        return name


def _once(table: dict[str, str | None], key: str, value: str) -> None:
    table[key] = value if table.get(key, value) == value else None
