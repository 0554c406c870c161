"""A change under screening: the region's text before and after, and what lies around it.

`Outside` answers what the rules ask of the surroundings: which names are used there, which variables, functions, types
and macros are declared there, and whether a function's body would itself be allowed in a region.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import tree_sitter

from kernelwright.preprocessor import Macro as Definition
from kernelwright.screen.expansion import known_macros, opened
from kernelwright.screen.names import refused_reason
from kernelwright.screen.scope import HOLE, Declared, Names, declarator_names, read_names, text
from kernelwright.screen.text import Code
from kernelwright.source import function_name, walk

Level = Literal["file", "class", "block"]
MAX_NAMES = 4
"""How many names of names for a type are followed."""
_OPENING = {")": "(", "]": "[", "}": "{"}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_NAMES = ("identifier", "field_identifier", "type_identifier", "namespace_identifier")


PLAIN_TYPE = re.compile(
    r"(?:const|constexpr|static|inline|unsigned|signed|char|long|short|int|size_t|u?int(?:_fast|_least)?\d+_t|bool|ptrdiff_t|ssize_t"
    r"|dim3|uint|float|double|__constant__|\s)+"
)
"""Types of numbers, with what may stand around them in a declaration."""


@dataclass(frozen=True)
class Finding:
    """What a rule saw: offset into the candidate's joined text, what is wrong with it, what to do instead."""

    at: int
    what: str
    advice: str


@dataclass(frozen=True)
class Macro:
    name: str
    body: str
    pastes: bool
    function_like: bool


@dataclass
class Outside:
    """Everything of the file but the region, and the files read with it."""

    code: Code
    others: tuple[Code, ...] = ()
    after: str = ""
    """The text behind the region."""
    beside: tuple[Code, ...] = ()
    """The new texts of the candidate's other regions."""
    _opened: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _troubles: dict[str, str | None] = field(default_factory=dict)
    _mentions: dict[str, set[str]] = field(default_factory=dict)

    @cached_property
    def names(self) -> Names:
        return read_names(self.code.tree.root_node)

    @cached_property
    def all_names(self) -> list[Names]:
        return [self.names, *(read_names(other.tree.root_node) for other in self.others)]

    @cached_property
    def used(self) -> set[str]:
        """Names that are used or declared outside, local variables of other functions left out."""
        used: set[str] = set()
        for names in self.all_names:
            used |= set(names.free_names) | {declared.name for declared in names.declared}
        for macro in self.macros.values():
            used |= set(re.findall(r"[A-Za-z_]\w*", macro.body))
        return used - {HOLE}

    @cached_property
    def used_after(self) -> set[str]:
        """Names that the rest of the block uses, for a region that is a part of a function."""
        rest = Code(self.after, self.code.language)
        end = rest.unmatched[0].at if rest.unmatched else len(rest.text)
        names = read_names(Code(rest.text[:end], self.code.language, ("void kernelwright_block() { ", "\n}")).root)
        return set(names.free_names)

    @cached_property
    def macros(self) -> dict[str, Macro]:
        found = {}
        for code in (self.code, *self.others):
            for directive in code.directives:
                match = re.match(r"#define (\w+)(\([^)]*\))? ?(.*)", directive.text)
                if match:
                    found[match[1]] = Macro(match[1], match[3], "##" in match[3], match[2] is not None)
        return found

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """The macros that the surroundings define once and for all, to expand them."""
        return known_macros((self.code, *self.others))

    def opened(self, name: str) -> tuple[str, ...]:
        """`name`, and all names in what it stands for where it is a macro; strings left out."""
        if name not in self._opened:
            found = [name]
            for inner in found:
                macro = self.macros.get(inner)
                body = re.sub(r'"(?:\\.|[^"\\])*"', '""', macro.body) if macro is not None else ""
                found += [word for word in dict.fromkeys(re.findall(r"[A-Za-z_]\w*", body)) if word not in found]
            self._opened[name] = tuple(found)
        return self._opened[name]

    @cached_property
    def empty_macros(self) -> frozenset[str]:
        """Macros that stand for qualifiers only, as in `#define DEVICE __device__ inline`."""
        qualifier = re.compile(r"(?:__\w+__|__\w+|inline|static|const|constexpr|restrict|\(\(\w+\)\)|\s)*")
        return frozenset(m.name for m in self.macros.values() if not m.function_like and qualifier.fullmatch(m.body))

    def declared(self, *kinds: str) -> dict[str, list[Declared]]:
        found: dict[str, list[Declared]] = {}
        for names in self.all_names:
            for name, declared in names.of_kind(*kinds).items():
                found.setdefault(name, []).extend(declared)
        return found

    @cached_property
    def variables(self) -> dict[str, list[Declared]]:
        return self.declared("variable")

    def is_constant(self, name: str) -> bool:
        """Whether `name` is a constexpr variable or an enumerator of the surroundings."""
        found = self.declared("variable", "enumerator").get(name, [])
        return any(d.kind == "enumerator" or b"constexpr" in (d.node.text or b"") for d in found)

    def variable(self, name: str, level: Level) -> tree_sitter.Node | None:
        """The declaration of an outside variable that a region could name, where there is one."""
        if level == "block" and name in self.local_variables:
            return self.local_variables[name]
        found = self.variables.get(name)
        return found[0].node if found else None

    @cached_property
    def local_variables(self) -> dict[str, tree_sitter.Node]:
        """What a region inside a function sees of it; `vector<double> a(n * n);` reads like a prototype."""
        return {name: node for name, (kind, node) in self.names.visible.items()
                if kind == "variable" or (kind == "prototype" and node.parent is not None
                                          and node.parent.type == "compound_statement")}  # fmt: skip

    def meaning(self, words: str) -> str:
        """Words of a type with the surroundings' names for types opened: macros, and typedefs with all that they mean."""
        for _ in range(MAX_NAMES):
            words = " ".join(self._type_names.get(word, word) for word in words.split())
        return words

    @cached_property
    def _type_names(self) -> dict[str, str]:
        found = {name: " ".join(body) for name, body in (
            (macro.name, [token.text for token in macro.body]) for macro in self.definitions.values()
            if macro.parameters is None)}  # fmt: skip
        for name, declared in self.declared("type").items():
            if all(_names_a_type(one.node) for one in declared):
                found[name] = " ".join(sorted({text(one.node.child_by_field_name("type")) for one in declared}))
        return found

    def trouble(self, name: str) -> str | None:
        """Why a function or class of the surroundings is no mere helper, or None where it is one, or unknown."""
        reached, seen = [name], {name}
        for helper in reached:
            if helper not in self._troubles:
                words = {
                    text(node) for body in self.helpers.get(helper, ()) for node in walk(body) if node.type in _NAMES
                }
                self._mentions[helper] = words & self.helpers.keys()
                self._troubles[helper] = self._find_trouble(helper)
            if (why := self._troubles[helper]) is not None:
                return why
            reached += sorted(self._mentions[helper] - seen)
            seen |= self._mentions[helper]
        return None

    def _find_trouble(self, name: str) -> str | None:
        bodies = self.helpers.get(name, [])
        if not bodies and name in self.prototypes:
            return "is defined elsewhere, out of sight"
        return next((why for body in bodies for node in walk(body) if (why := self._trouble_at(node, body))), None)

    def _trouble_at(self, node: tree_sitter.Node, body: tree_sitter.Node) -> str | None:
        word, holder = text(node), node.parent.parent if node.parent is not None else None
        if node.type == "static" and not node.is_named and holder is not None and holder.type == "declaration":
            return None if self._is_constant_table(holder) else "keeps static storage"
        if node.type not in _NAMES:
            return None
        if word != "assert" and (reason := refused_reason(word)) is not None:
            return f"{reason} ({word!r})"
        if node.type == "identifier" and word in self.mutable_globals and word not in _bound_in(body):
            return f"uses the variable {word!r}"
        return None

    def _is_constant_table(self, declaration: tree_sitter.Node) -> bool:
        """Constants of plain types, which hold nothing from one call to the next."""
        qualifiers = {text(child) for child in declaration.children if child.type == "type_qualifier"}
        pointer = any(node.type in ("pointer_declarator", "reference_declarator") for node in walk(declaration))
        kind = self.meaning(" ".join(text(declaration.child_by_field_name("type")).split()))
        return bool(qualifiers & {"const", "constexpr"}) and not pointer and bool(PLAIN_TYPE.fullmatch(kind))

    @cached_property
    def helpers(self) -> dict[str, list[tree_sitter.Node]]:
        found: dict[str, list[tree_sitter.Node]] = {}
        for name, declared in self.declared("function", "type").items():
            for one in declared:
                if one.node.child_by_field_name("body") is not None:
                    found.setdefault(name, []).append(one.node)
        for name, bodies in self.helpers_beside.items():
            found.setdefault(name, []).extend(bodies)
        return found

    @cached_property
    def helpers_beside(self) -> dict[str, list[tree_sitter.Node]]:
        """Functions that the candidate defines in its other regions, at any depth."""
        found: dict[str, list[tree_sitter.Node]] = {}
        for code in self.beside:
            for node in walk(code.tree.root_node):
                if node.type == "function_definition" and (name := function_name(node)) is not None:
                    found.setdefault(name, []).append(node)
        return found

    @cached_property
    def prototypes(self) -> set[str]:
        return set(self.declared("prototype"))

    @cached_property
    def mutable_globals(self) -> set[str]:
        return {
            name
            for name, found in self.variables.items()
            if not all(re.match(rb"[^={]*\b(?:const|constexpr|__constant__)\b", d.node.text or b"") for d in found)
        }


def _names_a_type(node: tree_sitter.Node) -> bool:
    """`typedef double real;` or `using real = double;`, no pointers and no arrays in it."""
    if node.type == "alias_declaration":
        described = node.child_by_field_name("type")
        return described is not None and described.child_by_field_name("declarator") is None
    declarator = node.child_by_field_name("declarator")
    return node.type == "type_definition" and declarator is not None and declarator.type == "type_identifier"


def _bound_in(node: tree_sitter.Node) -> set[str]:
    """Names that a function declares anywhere in it."""
    return {
        text(name)
        for inner in walk(node)
        for declarator in inner.children_by_field_name("declarator")
        if inner.type.endswith(("declaration", "loop"))
        for name in declarator_names(declarator)
    }


@dataclass
class Change:
    """One region: what it was, what it would be, and what lies around it."""

    language: str
    region: str
    old: Code
    new: Code
    outside: Outside
    level: Level
    whole_body: bool
    """Whether the region is a function's body, braces included: it may return."""
    ends_line: bool
    """Whether a newline follows the region, so that a last line may be a comment or a directive."""

    @cached_property
    def old_opened(self) -> Code:
        """The original text with the macros of its surroundings expanded."""
        return opened(self.old, self.outside.definitions)

    @cached_property
    def new_opened(self) -> Code:
        """The candidate's text, likewise; its lines are the same, its offsets are not."""
        return opened(self.new, self.outside.definitions)

    def place(self, at: int) -> int:
        """The offset in the candidate's own text of the line on which something stands in `new_opened`."""
        return self.new.line_start(self.new_opened.line(at))

    @cached_property
    def old_names(self) -> Names:
        return read_names(self.old.root, self.value_names)

    @cached_property
    def new_names(self) -> Names:
        return read_names(self.new.root, self.value_names)

    @cached_property
    def value_names(self) -> set[str]:
        """Names from outside that are values, so that `a * b;` with such an `a` declares nothing."""
        values = set(self.outside.local_variables)
        return (
            values | set(self.outside.variables) | set(self.outside.macros) | set(self.outside.declared("enumerator"))
        )

    @cached_property
    def aliases(self) -> dict[str, list[str]]:
        """What each namespace alias of the candidate and of its surroundings stands for."""
        found: dict[str, list[str]] = {}
        for code in (self.new, self.outside.code, *self.outside.others, *self.outside.beside):
            for node in walk(code.tree.root_node):
                if node.type == "namespace_alias_definition":
                    name, *_, meant = (text(child) for child in node.named_children)
                    found.setdefault(name, []).append(meant)
        return found

    def original_has(self, name: str) -> bool:
        return name in self.old.names

    @property
    def used_outside(self) -> set[str]:
        """Names by which the surroundings could refer to something that the region declares."""
        if self.level == "block":
            return self.outside.used_after
        if self.level == "class":
            return self.outside.used | {text(node) for names in self.outside.all_names for node in names.members}
        return self.outside.used

    def old_nodes(self, *types: str) -> Iterator[tree_sitter.Node]:
        return (node for node in walk(self.old.root) if node.type in types)

    def nodes(self, *types: str) -> Iterator[tree_sitter.Node]:
        return (node for node in walk(self.new.root) if node.type in types)


def change(
    language: str,
    region: str,
    before: str,
    old: str,
    after: str,
    new: str,
    others: Iterable[Code] = (),
    beside: Iterable[Code] = (),
) -> Change:
    """Read a region and its surroundings; `before` and `after` are the file's text on both sides of it, `beside` the new
    texts of other regions, which lie in both as the original has them."""
    plain = Code(old, language)
    hole = HOLE + ";" + "".join(token.text for token in plain.unmatched)
    body = bool(plain.tokens) and plain.tokens[0].text == "{" and plain.group(0) == len(plain.tokens) - 1
    if body:
        hole = "{" + hole + "}"
    outside = Outside(Code(before + hole + after, language), tuple(others), after, tuple(beside))
    level = _level(outside.names.around)
    wrap = _wrap(plain, level)
    empty = outside.empty_macros
    return Change(language, region, Code(old, language, wrap, empty), Code(new, language, wrap, empty), outside, level,
                  body and level == "block" and outside.names.around.count("compound_statement") == 1,
                  not after.lstrip(" \t") or after.lstrip(" \t").startswith("\n"))  # fmt: skip


def _level(around: list[str]) -> Level:
    for scope in reversed(around):
        if scope == "field_declaration_list":
            return "class"
        if scope in ("compound_statement", "function_definition", "lambda_expression"):
            return "block"
    return "file"


def _wrap(code: Code, level: Level) -> tuple[str, str]:
    """Text that gives a region its place when it is parsed alone, brackets that it leaves open or closes included."""
    head = {"file": "", "class": "struct kernelwright_class { ", "block": "void kernelwright_block() { "}[level]
    tail = {"file": "", "class": "\n};", "block": "\n}"}[level]
    closers = [token.text for token in code.unmatched if token.text in _OPENING]
    openers = [token.text for token in code.unmatched if token.text in _CLOSING]
    return head + "".join(_OPENING[text] for text in reversed(closers)), "".join(
        _CLOSING[text] for text in reversed(openers)
    ) + tail
