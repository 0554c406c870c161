"""Who declares a name, and which names a text takes from its surroundings: C++ scoping, as far as screening needs it.

`read_names` walks a syntax tree once. A name that it cannot tie to a declaration in the text is *free*: it means
something outside. Where the grammar cannot tell a declaration from an expression (`a * b;`), it is taken for an
expression, because a declaration that is not one would hide a use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import tree_sitter

HOLE = "kernelwright_hole"
"""Stands where a region was taken out, so that its surroundings can be read: what is visible there, and inside what."""

_SCOPES = {
    "compound_statement", "for_statement", "for_range_loop", "while_statement", "if_statement", "switch_statement",
    "function_definition", "lambda_expression", "template_declaration", "field_declaration_list", "catch_clause",
    "requires_expression", "template_template_parameter_declaration",
}  # fmt: skip
_DECLARATIONS = {
    "declaration", "parameter_declaration", "optional_parameter_declaration", "variadic_parameter_declaration",
    "field_declaration", "for_range_loop", "type_definition", "function_definition",
}  # fmt: skip
_TYPE_PARAMETERS = {
    "type_parameter_declaration", "variadic_type_parameter_declaration", "optional_type_parameter_declaration",
}  # fmt: skip
_TYPES = {"struct_specifier", "class_specifier", "union_specifier", "enum_specifier"}
_NAMES = {"identifier", "type_identifier", "namespace_identifier"}
_SURE_TYPES = {"primitive_type", "sized_type_specifier", "placeholder_type_specifier", "dependent_type", "decltype"}
_CLASS_BODY = "field_declaration_list"


def text(node: tree_sitter.Node | None) -> str:
    return (node.text or b"").decode(errors="replace") if node is not None else ""


@dataclass(frozen=True)
class Declared:
    """A name that the text declares at its outermost level (in it: namespaces; not: bodies and classes)."""

    name: str
    kind: str
    """function, prototype, variable, type, enumerator, namespace."""
    node: tree_sitter.Node
    """The whole declaration."""
    qualified: str
    """The name as written, as in `Timer::stop`."""
    template: bool


@dataclass
class Names:
    """What one text declares at its outermost level, and what it takes from outside."""

    declared: list[Declared] = field(default_factory=list)
    free: list[tree_sitter.Node] = field(default_factory=list)
    """Uses of names that nothing in the text declares, `::name` and the ends of `a::name` among them."""
    members: list[tree_sitter.Node] = field(default_factory=list)
    """Names after `.` and `->`."""
    visible: dict[str, tuple[str, tree_sitter.Node]] = field(default_factory=dict)
    """What a region sees where the hole is: name to kind and declaration."""
    around: list[str] = field(default_factory=list)
    """The kinds of node around the hole, outermost first."""
    local: dict[int, tree_sitter.Node] = field(default_factory=dict)
    """Uses of names that are declared in the text, by node id: the node that declares each."""

    @property
    def free_names(self) -> Counter[str]:
        return Counter(text(node) for node in self.free)

    def of_kind(self, *kinds: str) -> dict[str, list[Declared]]:
        found: dict[str, list[Declared]] = {}
        for declared in self.declared:
            if declared.kind in kinds:
                found.setdefault(declared.name, []).append(declared)
        return found


_PLAIN_NAMES = ("identifier", "field_identifier", "type_identifier")
_OTHER_NAMES = ("qualified_identifier", "template_function", "operator_name", "destructor_name", "operator_cast")


def declarator_names(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """The identifier nodes that a declarator binds: one, or several in a structured binding."""
    if node.type in (*_PLAIN_NAMES, *_OTHER_NAMES):
        yield node
    elif node.type == "structured_binding_declarator":
        yield from (child for child in node.named_children if child.type == "identifier")
    elif (inner := inner_declarator(node)) is not None:
        yield from declarator_names(inner)


def inner_declarator(node: tree_sitter.Node) -> tree_sitter.Node | None:
    """The declarator inside a pointer, array, reference or function declarator; some have no field for it."""
    kinds = (*_PLAIN_NAMES, "qualified_identifier")
    return node.child_by_field_name("declarator") or next(
        (child for child in node.named_children if child.type.endswith("declarator") or child.type in kinds), None
    )


def function_declarator(node: tree_sitter.Node) -> tree_sitter.Node | None:
    """The function declarator in a declarator, where it declares a function and not a pointer to one."""
    while node.type in ("pointer_declarator", "reference_declarator", "init_declarator", "attributed_declarator"):
        step = inner_declarator(node)
        if step is None:
            return None
        node = step
    if node.type != "function_declarator":
        return None
    inner = node.child_by_field_name("declarator")
    return None if inner is None or inner.type == "parenthesized_declarator" else node


def read_names(root: tree_sitter.Node, variables: Iterable[str] = ()) -> Names:
    """Walk a syntax tree; `variables` are names known from outside to be values, not types."""
    return _Reader(dict.fromkeys(variables, "variable")).read(root)


class _Reader:
    def __init__(self, known: Mapping[str, str]) -> None:
        self.names = Names()
        self.known = known
        self.scopes: list[tuple[str, dict[str, tuple[str, tree_sitter.Node]]]] = [("file", {})]
        self.binders: set[int] = set()
        self._declared: set[tuple[int, str]] = set()
        self._declarators_of: tuple[int, frozenset[int]] = (-1, frozenset())
        """The last declaration asked for and the ids of its declarators; `int a, b, …` is asked once for each name."""

    def read(self, root: tree_sitter.Node) -> Names:
        # What is around a node is kept here: to ask the tree for it costs as much as the node has siblings.
        stack: list[tuple[tree_sitter.Node, tree_sitter.Node | None, bool]] = [(root, root.parent, True)]
        while stack:
            node, parent, entering = stack.pop()
            if not entering:
                self.scopes.pop()
                continue
            self._bind(node, parent)
            if node is not root and self._opens_scope(node):
                self.scopes.append((node.type, {}))
                stack.append((node, parent, False))
            self._bind_ahead(node)
            self._use(node, parent)
            stack.extend((child, node, True) for child in reversed(node.children))
        return self.names

    def _opens_scope(self, node: tree_sitter.Node) -> bool:
        if node.type == "function_declarator":
            return not _heads_definition(node)
        return node.type in _SCOPES

    def _bind(self, node: tree_sitter.Node, parent: tree_sitter.Node | None) -> None:
        """Add to the current scope what this node declares, at the moment its declarator is reached."""
        if node.type in ("template_declaration", "function_definition"):
            self._bind_headed(node)
        elif node.type in _TYPES or node.type in ("alias_declaration", "concept_definition"):
            name = node.child_by_field_name("name")
            if name is not None and (node.type not in _TYPES or node.child_by_field_name("body") is not None):
                self._declare(name, "type", node)
        elif node.type in ("namespace_definition", "namespace_alias_definition"):
            name = node.child_by_field_name("name")
            if name is not None:
                self._declare(name, "namespace", node)
        elif node.type == "enumerator":
            self._declare(node.children[0], "enumerator", node)
        elif node.type in _TYPE_PARAMETERS:
            for child in node.named_children[:1]:
                self._declare(child, "type", node)
        elif node.type == "lambda_capture_initializer":
            self._declare(node.children[0], "variable", node)
        elif parent is not None and parent.type in _DECLARATIONS and node.id in self._declarators(parent):
            self._bind_declarator(node, parent)

    def _declarators(self, declaration: tree_sitter.Node) -> frozenset[int]:
        if self._declarators_of[0] != declaration.id:
            found = frozenset(child.id for child in declaration.children_by_field_name("declarator"))
            self._declarators_of = (declaration.id, found)
        return self._declarators_of[1]

    def _bind_headed(self, node: tree_sitter.Node) -> None:
        """A function's or a template's own name belongs to the scope around its parameters."""
        inner = node
        while inner.type == "template_declaration" and inner.named_children:
            inner = inner.named_children[-1]
        if inner.type == "function_definition":
            declarator = inner.child_by_field_name("declarator")
            for name in declarator_names(declarator) if declarator is not None else ():
                if name.id not in self.binders:
                    self._declare(name, "function", inner)
        elif node is not inner:
            for name in self._template_names(inner):
                self._declare(name, "type" if inner.type in (*_TYPES, "alias_declaration") else "variable", inner)

    def _template_names(self, inner: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
        if inner.type in _TYPES or inner.type == "alias_declaration":
            name = inner.child_by_field_name("name")
            yield from [name] if name is not None else []

    def _bind_declarator(self, node: tree_sitter.Node, parent: tree_sitter.Node) -> None:
        if parent.type == "function_definition" or (
            parent.type in ("declaration", "field_declaration") and self._may_be_expression(node, parent)
        ):
            return
        kind = "type" if parent.type == "type_definition" else "variable"
        if parent.type in ("declaration", "field_declaration") and function_declarator(node) is not None:
            kind = "prototype"
        for name in declarator_names(node):
            if name.id not in self.binders:
                self._declare(name, kind, parent)

    def _may_be_expression(self, node: tree_sitter.Node, declaration: tree_sitter.Node) -> bool:
        """Whether `a * b;`, `a & b;` or `a<b> c;` may be an arithmetic expression that declares nothing."""
        kind = declaration.child_by_field_name("type")
        if kind is None or kind.type in _SURE_TYPES or kind.type in _TYPES:
            return False
        if any(child.type in ("type_qualifier", "storage_class_specifier") for child in declaration.children):
            return False
        if kind.type == "qualified_identifier":
            inner = node.child_by_field_name("declarator") if node.type == "init_declarator" else node
            return inner is not None and inner.type in ("pointer_declarator", "reference_declarator")
        name = kind.child_by_field_name("name") if kind.type == "template_type" else kind
        return self._kind_of(text(name)) in ("variable", "enumerator")

    def _bind_ahead(self, node: tree_sitter.Node) -> None:
        """Members are visible in the whole class, also before their declaration."""
        if node.type == _CLASS_BODY:
            for child in node.named_children:
                for declarator in child.children_by_field_name("declarator"):
                    for name in declarator_names(declarator):
                        self.scopes[-1][1][text(name)] = ("member", child)

    def _declare(self, name: tree_sitter.Node, kind: str, node: tree_sitter.Node) -> None:
        self.binders.add(name.id)
        bare = text(name).rsplit("::", 1)[-1].split("<")[0].strip()
        _, names = self.scopes[-1]
        names[bare] = (kind, node)
        if name.type == "qualified_identifier":
            self.binders.update(child.id for child in name.children)
        if all(scope in ("file", "template_declaration") for scope, _ in self.scopes):
            in_template = any(scope == "template_declaration" for scope, _ in self.scopes)
            if kind in ("type", "variable") and in_template and node.type in (*_TYPE_PARAMETERS, *_PARAMETERS):
                return
            headed = node.parent is not None and node.parent.type == "template_declaration"
            if (node.id, bare) not in self._declared:
                self._declared.add((node.id, bare))
                self.names.declared.append(Declared(bare, kind, node, text(name), in_template or headed))

    def _use(self, node: tree_sitter.Node, parent: tree_sitter.Node | None) -> None:
        if node.type == "field_identifier" and node.id not in self.binders:
            self.names.members.append(node)
        if node.type not in _NAMES or node.id in self.binders:
            return
        name = text(node)
        if name == HOLE:
            self.names.visible = {n: found for _, names in self.scopes for n, found in names.items()}
            self.names.around = [scope for scope, _ in self.scopes]
        if parent is not None and parent.type == "qualified_identifier" and parent.child_by_field_name("name") == node:
            self.names.free.append(node)
            return
        declared = next((names[name] for _, names in reversed(self.scopes) if name in names), None)
        if declared is None:
            self.names.free.append(node)
        else:
            self.names.local[node.id] = declared[1]

    def _kind_of(self, name: str) -> str | None:
        found = next((names[name][0] for _, names in reversed(self.scopes) if name in names), None)
        return found or self.known.get(name)


_PARAMETERS = ("parameter_declaration", "optional_parameter_declaration", "variadic_parameter_declaration")


def _heads_definition(node: tree_sitter.Node) -> bool:
    parent = node.parent
    while parent is not None and parent.type.endswith("declarator"):
        parent = parent.parent
    return parent is not None and parent.type in ("function_definition", "lambda_expression")
