"""What names and expressions are to the code of one function: types, arithmetic kinds, constants.

A name that is declared twice in a function with different types, or nowhere in the file, has no type here, and whatever
asks for it does not fire.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Literal

from tree_sitter import Node

from kernelwright.policy.rules.declared import Declared, FileNames, declarations, declared_by
from kernelwright.policy.rules.syntax import (
    FLOAT_MATH,
    Site,
    arguments,
    below,
    called,
    child,
    enclosing,
    flat,
    is_math,
    operator,
    root_name,
    strip,
    text_of,
)

Kind = Literal["float", "double", "int"]
_INTEGERS = re.compile(
    r"(unsigned|signed|char|short|int|long|bool|size_t|ptrdiff_t|u?int\d+_t|uint|ushort|uchar|ulong|std::size_t)+"
)
_VECTOR = re.compile(r"(float|double|int|uint|short|ushort|char|uchar|long|ulong|longlong)[1234]")
_CONTAINER = re.compile(r"(?:std::)?(?:vector|span|array|valarray)\s*<\s*([^,]+?(?:<.*>)?)\s*(?:,\s*\w+\s*)?>")
_BUILTINS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})


class Names:
    """The names that code inside one function sees."""

    def __init__(self, site: Site, function: Node | None, file: FileNames) -> None:
        self.site = site
        self.file = file
        self.function = function
        self._member = function is not None and enclosing(function, "class_specifier", "struct_specifier") is not None
        self._local: dict[str, Declared | None] = {}
        for declared in declarations(function) if function is not None else ():
            known = self._local.get(declared.name, declared)
            same = known is not None and (known.base, known.levels) == (declared.base, declared.levels)
            self._local[declared.name] = declared if same else None

    @cached_property
    def parameters(self) -> list[Declared]:
        """The function's own parameters, in order."""
        if self.function is None:
            return []
        declarator = next(below(self.function, "function_declarator"), None)
        listed = child(declarator, "parameters") if declarator is not None else None
        return [d for node in (listed.named_children if listed is not None else []) for d in declared_by(node)]

    def find(self, name: str) -> Declared | None:
        """The declaration of a name, where the file holds exactly one type for it."""
        if name in self._local:
            return self._local[name]
        return None if self._member else self.file.globals.get(name)

    def local(self, name: str) -> Declared | None:
        return self._local.get(name)

    def memory(self, name: str) -> str:
        """The variable whose memory a name reaches, as far as initial values say: `a` for `float *row = a + i * n`."""
        for _ in range(4):
            declared = self._local.get(name)
            if declared is None or declared.parameter or not (declared.pointers or declared.reference):
                return name
            bound = declared.value if declared.value is not None else None
            while bound is not None and bound.type in ("cast_expression", "parenthesized_expression"):
                bound = child(bound, "value") or strip(bound)
            root = root_name(bound) if bound is not None else None
            if root is None or root == name:
                return name
            name = root
        return name

    def kind(self, node: Node) -> Kind | None:
        """What an expression's value is in arithmetic; None where the file does not say."""
        typed = self.typed(node)
        if typed is None or typed[1] != 0:
            return None
        return _scalar(self.file.base(typed[0]))

    def typed(self, node: Node) -> tuple[str, int] | None:
        """An expression's base type and pointer levels."""
        node = strip(node)
        reader = _READERS.get(node.type)
        return reader(self, node) if reader is not None else None

    def _literal(self, node: Node) -> tuple[str, int] | None:
        return (found, 0) if (found := literal_kind(text_of(node))) else None

    def _identifier(self, node: Node) -> tuple[str, int] | None:
        name = text_of(node)
        declared = self.find(name)
        if declared is not None:
            return None if declared.base.startswith("auto") else (declared.base, declared.levels)
        value = self.file.base(name)
        found = literal_kind(value.lstrip("-+")) if name not in self._local and value != name else None
        return (found, 0) if found else None

    def _subscript(self, node: Node) -> tuple[str, int] | None:
        argument, indices = child(node, "argument"), child(node, "indices")
        typed = self.typed(argument) if argument is not None else None
        if typed is None or (indices is not None and indices.named_child_count != 1):
            return None
        held = _CONTAINER.fullmatch(self.file.base(typed[0])) if typed[1] == 0 else None
        return (held[1], 0) if held and held[1] != "bool" else (typed[0], typed[1] - 1) if typed[1] > 0 else None

    def _pointer(self, node: Node) -> tuple[str, int] | None:
        argument = child(node, "argument")
        typed = self.typed(argument) if argument is not None else None
        if typed is None:
            return None
        return typed[0], typed[1] + (1 if operator(node) == "&" else -1)

    def _field(self, node: Node) -> tuple[str, int] | None:
        argument, name = child(node, "argument"), child(node, "field")
        if argument is None or name is None:
            return None
        if text_of(argument) in _BUILTINS:
            return "int", 0
        typed = self.typed(argument)
        base = self.file.base(typed[0]) if typed is not None and typed[1] == 0 else ""
        if base == "dim3":
            return "int", 0
        vector = _VECTOR.fullmatch(base)
        return (vector[1], 0) if vector and text_of(name) in ("x", "y", "z", "w") else None

    def _cast(self, node: Node) -> tuple[str, int] | None:
        kind = child(node, "type")
        if kind is None:
            return None
        base = child(kind, "type")
        return (text_of(base), text_of(kind).count("*")) if base is not None else None

    def _unary(self, node: Node) -> tuple[str, int] | None:
        argument = child(node, "argument")
        return self.typed(argument) if argument is not None else None

    def _binary(self, node: Node) -> tuple[str, int] | None:
        left, right = child(node, "left"), child(node, "right")
        if left is None or right is None:
            return None
        if operator(node) not in ("+", "-", "*", "/"):
            return "int", 0
        first = self.typed(left)
        if operator(node) in ("+", "-") and first is not None and first[1] > 0 and self.kind(right) == "int":
            return first
        return self._widest([left, right])

    def _conditional(self, node: Node) -> tuple[str, int] | None:
        parts = [child(node, "consequence"), child(node, "alternative")]
        return self._widest([part for part in parts if part is not None])

    def _widest(self, parts: list[Node]) -> tuple[str, int] | None:
        kinds = [self.kind(part) for part in parts]
        if not kinds or None in kinds:
            return None
        return next(kind for kind in ("double", "float", "int") if kind in kinds), 0

    def _call(self, node: Node) -> tuple[str, int] | None:
        name, function = called(node), child(node, "function")
        if function is not None and function.type == "primitive_type":
            return name or text_of(function), 0
        returned = self.file.returns.get(name)
        if returned is not None and function is not None and function.type == "identifier":
            return returned, 0
        return self._math(node, name) if is_math(node) else None

    def _math(self, node: Node, name: str) -> tuple[str, int] | None:
        if name == "__ldg":
            typed = self.typed(arguments(node)[0]) if arguments(node) else None
            return (typed[0], typed[1] - 1) if typed is not None else None
        if (name.removesuffix("f") in FLOAT_MATH and name not in FLOAT_MATH) or name.startswith("__"):
            return "float", 0
        widest = self._widest(arguments(node))
        if name in ("abs", "min", "max") or widest is None:
            return widest
        overloaded = self.site.language != "cpp" or "::" in flat(node)
        floats = all(self.kind(argument) == "float" for argument in arguments(node))
        return ("float" if overloaded and floats else "double"), 0

    def constant(self, node: Node | None) -> int | None:
        """The value of an integer expression that the file fixes: literals, macros, initialised names, + - * /."""
        if node is None:
            return None
        node = strip(node)
        if node.type == "number_literal":
            return _integer(text_of(node))
        if node.type == "identifier":
            return self.constant_name(text_of(node))
        if node.type == "binary_expression":
            left, right = self.constant(child(node, "left")), self.constant(child(node, "right"))
            if left is None or right is None or (operator(node) == "/" and right == 0):
                return None
            values = {"+": left + right, "-": left - right, "*": left * right, "/": left // right if right else 0}
            return values.get(operator(node))
        return None

    def constant_name(self, name: str) -> int | None:
        """The value of a name that the file fixes."""
        declared = self.find(name)
        if declared is not None:
            fixed = declared.qualifiers & {"const", "constexpr"} and declared.levels == 0
            return self.constant(declared.value) if fixed else None
        return _integer(self.file.base(name)) if name not in self._local else None


_READERS = {
    "number_literal": Names._literal, "identifier": Names._identifier, "subscript_expression": Names._subscript,
    "pointer_expression": Names._pointer, "field_expression": Names._field, "cast_expression": Names._cast,
    "unary_expression": Names._unary, "binary_expression": Names._binary,
    "conditional_expression": Names._conditional, "call_expression": Names._call,
}  # fmt: skip


class FileScope:
    """The names of a file, and of each of its functions, read once."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.file = FileNames(site)
        self._known: dict[int, Names] = {}

    def inside(self, function: Node | None) -> Names:
        """The names that code in a function of the file (or outside all) sees."""
        key = function.id if function is not None else 0
        if key not in self._known:
            self._known[key] = Names(self.site, function, self.file)
        return self._known[key]


@lru_cache(maxsize=8)
def file_scope(site: Site) -> FileScope:
    """The scope of a site's file; several rules in turn ask for the same one."""
    return FileScope(site)


def _integer(text: str) -> int | None:
    return int(text.rstrip("uUlL"), 0) if re.fullmatch(r"[-+]?(0|[1-9]\d*|0[xX][0-9a-fA-F]+)[uUlL]*", text) else None


def _scalar(base: str) -> Kind | None:
    plain = re.sub(r"\b(const|static|constexpr|volatile)\b|\s", "", base)
    if plain == "float":
        return "float"
    if plain == "double":
        return "double"
    return "int" if _INTEGERS.fullmatch(plain) and plain != "longdouble" else None


def literal_kind(text: str) -> Kind | None:
    """What a numeric literal is: `1.0` double, `1.f` float, `1u` int; None for others. The parser takes in a sign."""
    if _integer(text) is not None:
        return "int"
    if re.fullmatch(r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?[fF]?", text):
        return "float" if text[-1] in "fF" else "double"
    return None
