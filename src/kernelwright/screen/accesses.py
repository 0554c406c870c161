"""What a text does with each buffer: its pointers followed through aliases, helpers and returns, every use classified.

A use that cannot be followed is not taken for harmless: the pointer counts as hidden. Which uses a region may newly have
is `kernelwright.screen.buffers`' rule; whether a read can see what an earlier call left is `covered`'s.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import tree_sitter

from kernelwright.screen.covered import Coverage
from kernelwright.screen.pointers import (
    ancestors,
    call_around,
    callee,
    counted,
    declared_type,
    element,
    keeps_pointer,
    parameters,
    pointer_names,
    step_to_base,
    value_only,
)
from kernelwright.screen.scope import Names, declarator_names, text
from kernelwright.source import function_name, walk

_READERS = re.compile(
    r"(?!.*(?:store|__st|_st_))(?:.*(?:load|ldg|ldc|lds|ldlu|gather|compare|reduce|accumulate|equal"
    r"|inner_product|count|find|max_element|min_element).*|dot|memcmp)",
    re.IGNORECASE,
)
_UPDATERS = re.compile(r"(?!.*prefetch).*(?:atomic|fetch|exchange).*", re.IGNORECASE)
_READ_ARGUMENTS = {
    "memcpy": (1,), "memmove": (1,), "__builtin_memcpy": (1,), "__builtin_memmove": (1,), "copy": (0, 1), "copy_n": (0,),
    "copy_if": (0, 1), "copy_backward": (0, 1), "reverse_copy": (0, 1), "uninitialized_copy": (0, 1), "move": (0, 1),
    "transform": (0, 1), "partial_sum": (0, 1), "inclusive_scan": (0, 1), "exclusive_scan": (0, 1),
    "adjacent_difference": (0, 1), "merge": (0, 1, 2, 3), "__pipeline_memcpy_async": (1,), "memcpy_async": (1, 2),
    "cudaMemcpy": (1,), "cudaMemcpyAsync": (1,), "hipMemcpy": (1,), "hipMemcpyAsync": (1,),
}  # fmt: skip
_CONTAINERS = re.compile(r"(?:std::)?(?:vector|deque|list|valarray|basic_string|set|multiset)\b")
_HOLDERS = re.compile(
    r"pair|tuple|make_(?:pair|tuple|any|optional)|forward_as_tuple|tie|c?ref|addressof|bind\w*|exchange"
)
_NUMBERS = re.compile(
    r"(?:const |std::|unsigned |signed |long |short )*(?:int|long|char|bool|size_t|u?int(?:ptr|64|32)_t|ptrdiff_t|unsigned)"
)
_LOADS = re.compile(r"\b(?:ld|ldu|atom|red|ldmatrix|cp\.async(?!\.bulk\.global)|cp\.reduce|tex|tld4|suld)\b")
_FILLS = re.compile(
    r"(?:__builtin_)?memset|(?:cuda|hip)Memset(?:Async)?|(?:uninitialized_)?fill(?:_n)?|iota|generate(?:_n)?"
)
_WRITERS = re.compile(r".*(?:store|_st|__st|stream|scatter|movnt|prefetch|copy_to|vst\d).*", re.IGNORECASE)
"""Functions that only write through a pointer, or do not reach through it at all."""
_FOLLOWED = ("assignment_expression", "update_expression", "return_statement")
MAX_LOOKS = 20
"""How often the aliases of a text are followed; code that people write is settled by the third look."""
Key = tuple[str, str | int]
"""A buffer: a function's name and the parameter's position, or an empty name and a variable of the surroundings."""


@dataclass
class Access:
    """How a text uses one buffer; the texts are indices, spaces left out."""

    stores: list[tuple[tree_sitter.Node, str]] = field(default_factory=list)
    reads: list[tuple[tree_sitter.Node, str]] = field(default_factory=list)
    updates: list[tree_sitter.Node] = field(default_factory=list)
    fills: list[tree_sitter.Node] = field(default_factory=list)
    unclear: list[tree_sitter.Node] = field(default_factory=list)
    hidden: list[tree_sitter.Node] = field(default_factory=list)
    """Where the pointer goes into something that is not followed: a member, a pair, a pointer to the pointer."""

    looked_at: bool = False
    """Whether a read could see what the buffer held before; known for functions of the candidate's other regions."""

    @property
    def only_read(self) -> bool:
        return bool(self.reads) and not (self.stores or self.updates or self.fills or self.unclear or self.hidden)

    @property
    def only_written(self) -> bool:
        return bool(self.stores) and not (self.reads or self.updates or self.unclear or self.hidden)


def _read_arguments(name: str, call: tree_sitter.Node) -> tuple[int, ...]:
    """The positions of the arguments that a function of the library reads through."""
    given = call.child_by_field_name("arguments")
    if name == "transform" and given is not None and len(given.named_children) > 4:
        return (0, 1, 2)
    return _READ_ARGUMENTS.get(name, ())


def _points_to_const(helper: tree_sitter.Node, position: int) -> bool:
    """Whether a function of the surroundings takes this argument as `const T*`: it can only read what is there."""
    taken = parameters(helper)[position : position + 1]
    return any(pointer_names(one) and any(text(child) == "const" for child in one.children) for one in taken)


class Accesses:
    """Follows every pointer that enters a text, by parameter or by free name, through aliases and helpers of the text."""

    def __init__(
        self,
        root: tree_sitter.Node,
        names: Names,
        helpers: Mapping[str, Sequence[tree_sitter.Node]],
        beside: Mapping[Key, Access] | None = None,
    ) -> None:
        self.names = names
        self.free = {node.id for node in names.free}
        self.functions: dict[str, list[tree_sitter.Node]] = defaultdict(list)
        for node in walk(root):
            if node.type == "function_definition" and (name := function_name(node)):
                self.functions[name].append(node)
            elif node.type == "lambda_expression" and node.parent is not None and node.parent.type == "init_declarator":
                self.functions[text(node.parent.child_by_field_name("declarator"))].append(node)
        self.outside = helpers
        self.beside = beside or {}
        """What functions of the candidate's other regions do with what they are handed."""
        self.pointers: dict[tuple[int, str], set[Key]] = defaultdict(set)
        """Local pointers by declaration and name: the buffers that each may point into."""
        self.references: dict[tuple[int, str], set[Key]] = defaultdict(set)
        """Local references to elements, likewise."""
        self.found: dict[Key, Access] = defaultdict(Access)
        self.returned: dict[str, set[Key]] = defaultdict(set)
        """What the pointers that functions of the text return may point into."""
        self.coverage = Coverage(root, names)
        self.operators = any(
            node.type == "operator_name" and text(node).removeprefix("operator").strip() not in ("()", "[]", "=")
            for node in walk(root)
        )
        self.settled = True
        """Whether every alias was followed to its end."""
        self._enter_functions()
        self._follow_all(root)
        for node in walk(root):
            if node.type in ("identifier", "call_expression"):
                self._classify(node)
            elif node.type == "type_identifier" and (declared := self.names.local.get(node.id)) is not None:
                # `T* q(p);` is read as a prototype whose parameter has the type `p`.
                for key in self.pointers.get((declared.id, text(node)), ()):
                    self.found[key].hidden.append(node)

    def uncovered(self, access: Access) -> Iterator[tree_sitter.Node]:
        """Reads and updates of a buffer that could see what it held before this call."""
        stores = [store for store, _ in access.stores]
        yield from self.coverage.uncovered_reads(access.stores, access.reads)
        yield from self.coverage.uncovered_updates([*stores, *access.fills], access.updates)

    def looked(self) -> dict[Key, Access]:
        for access in self.found.values():
            access.looked_at = any(self.uncovered(access))
        return self.found

    def _enter_functions(self) -> None:
        for name, definitions in self.functions.items():
            for definition in definitions:
                for index, parameter in enumerate(parameters(definition)):
                    for declared in pointer_names(parameter):
                        self.pointers[parameter.id, declared].add((name, index))

    def _follow_all(self, root: tree_sitter.Node) -> None:
        """Until nothing new is found: an alias of an alias needs a second look, in either order."""
        follow = {
            "init_declarator": self._follow_alias,
            "assignment_expression": self._follow_alias,
            "call_expression": self._follow_call,
            "return_statement": self._follow_return,
        }
        nodes, known = [node for node in walk(root) if node.type in follow], -1
        for _ in range(MAX_LOOKS):
            aliases = (*self.pointers.values(), *self.references.values(), *self.returned.values())
            if known == (known := sum(map(len, aliases))):
                return
            for node in nodes:
                follow[node.type](node)
            nodes.reverse()
        self.settled = False

    def _follow_return(self, node: tree_sitter.Node) -> None:
        around = next((a for a in ancestors(node) if a.type in ("lambda_expression", "function_definition")), None)
        name = next((name for name, bodies in self.functions.items() if around in bodies), None)
        if name is not None and node.named_children:
            self.returned[name] |= self.buffers(node.named_children[0])

    def _follow_alias(self, node: tree_sitter.Node) -> None:
        left = node.child_by_field_name("declarator") or node.child_by_field_name("left")
        right = node.child_by_field_name("value") or node.child_by_field_name("right")
        if left is None or right is None:
            return
        if left.type == "reference_declarator" and node.parent is not None:
            reached = right.type == "subscript_expression" or text(right).startswith("*")
            base = right.child_by_field_name("argument") if reached else None
            for name in declarator_names(left) if base is not None else ():
                self.references[node.parent.id, text(name)] |= self.buffers(base)
        for target, declaration in self._assigned(node, left):
            self.pointers[declaration.id, target] |= self.buffers(right)
        cast = right.type == "cast_expression" or callee(right).endswith("_cast")
        if node.parent is not None and left.type == "identifier" and cast and _NUMBERS.fullmatch(declared_type(node)):
            self.pointers[node.parent.id, text(left)] |= {key for key in self.buffers(right) if key[0]}

    def _assigned(self, node: tree_sitter.Node, left: tree_sitter.Node) -> Iterator[tuple[str, tree_sitter.Node]]:
        if node.type == "assignment_expression":
            declared = self.names.local.get(left.id) if left.type == "identifier" else None
            if declared is not None:
                yield text(left), declared
        elif node.parent is not None and (
            left.type in ("pointer_declarator", "array_declarator")
            or "auto" in text(node.parent.child_by_field_name("type"))
        ):
            yield from ((text(name), node.parent) for name in declarator_names(left))

    def _follow_call(self, node: tree_sitter.Node) -> None:
        arguments = node.child_by_field_name("arguments")
        for helper in self.functions.get(callee(node), ()):
            for parameter, argument in zip(
                parameters(helper), arguments.named_children if arguments else (), strict=False
            ):
                for name in pointer_names(parameter):
                    self.pointers[parameter.id, name] |= self.buffers(argument)

    def buffers(self, node: tree_sitter.Node | None) -> set[Key]:
        """The buffers that an address expression may point into, as in `(float4*)(p + i)`, `&p[i]`, `c ? p : q`."""
        if node is None:
            return set()
        if node.type == "identifier":
            declared = self.names.local.get(node.id)
            if declared is not None:
                return self.pointers.get((declared.id, text(node)), set())
            called = node.parent is not None and node.parent.child_by_field_name("function") == node
            return {("", text(node))} if node.id in self.free and not called else set()
        if node.type == "call_expression" and callee(node) in self.returned:
            return self.returned[callee(node)]
        if node.type == "initializer_list":
            return {key for child in node.named_children for key in self.buffers(child)}
        if node.type == "comma_expression":
            return self.buffers(node.child_by_field_name("right"))
        if node.type == "conditional_expression":
            return self.buffers(node.child_by_field_name("consequence")) | self.buffers(
                node.child_by_field_name("alternative")
            )
        if node.type == "binary_expression" and text(node.child_by_field_name("operator")) == "+":
            return self.buffers(node.child_by_field_name("left")) or self.buffers(node.child_by_field_name("right"))
        return self.buffers(step_to_base(node))

    def _classify(self, node: tree_sitter.Node) -> None:
        declared = self.names.local.get(node.id)
        through = self.references.get((declared.id, text(node)), set()) if declared is not None else set()
        for key in through:
            if node.parent is not None and node.parent.type != "reference_declarator":
                self._classify_element(node, node, "&", self.found[key])
        keys = self.buffers(node) if not through else set()
        place, index = element(node) if keys else (None, "")
        for key in keys:
            if place is not None:
                self._classify_element(node, place, index, self.found[key])
            else:
                self._classify_pointer(node, self.found[key])

    def _classify_element(self, node: tree_sitter.Node, place: tree_sitter.Node, index: str, access: Access) -> None:
        parent = place.parent
        while parent is not None and parent.type in ("field_expression", "parenthesized_expression"):
            place, parent = parent, parent.parent
        kind = parent.type if parent is not None else ""
        if kind == "assignment_expression" and parent is not None and parent.child_by_field_name("left") == place:
            plain = text(parent.child_by_field_name("operator")) == "="
            if plain:
                access.stores.append((node, index))
            else:
                self._update(node, index, parent, access)
        elif (counting := counted(place)) is not None:
            self._update(node, index, counting, access)
        elif kind == "pointer_expression" and parent is not None and text(parent).startswith("&"):
            again, at = element(parent)
            if again is None:
                self._classify_pointer(parent, access)
            else:
                self._classify_element(parent, again, f"&{index}{at}", access)
        elif kind == "init_declarator" and parent is not None and parent.child_by_field_name("declarator") is not None and (
            parent.child_by_field_name("declarator") or node).type == "reference_declarator":  # fmt: skip
            return
        elif kind == "argument_list" and self._taken_by_reference(place):
            access.unclear.append(node)
        else:
            access.reads.append((node, index))

    def _update(self, node: tree_sitter.Node, index: str, expression: tree_sitter.Node, access: Access) -> None:
        """`c[i] += …` looks at nothing, unless its value is used."""
        around = expression.parent
        while around is not None and around.type in ("parenthesized_expression", "comma_expression"):
            around = around.parent
        idle = around is None or around.type in ("expression_statement", "for_statement")
        access.updates.append(node)
        access.reads += [] if idle else [(node, index)]

    def _taken_by_reference(self, argument: tree_sitter.Node) -> bool:
        """Whether a helper takes this argument as `T&`, to write to it."""
        call = argument.parent.parent if argument.parent is not None else None
        if call is None or argument.parent is None:
            return False
        position = [child.id for child in argument.parent.named_children].index(argument.id)
        for helper in (*self.functions.get(callee(call), ()), *self.outside.get(callee(call), ())):
            taken = parameters(helper)
            declarator = taken[position].child_by_field_name("declarator") if position < len(taken) else None
            if declarator is not None and declarator.type == "reference_declarator":
                return not any(text(child) == "const" for child in taken[position].children)
        return False

    def _hides(self, node: tree_sitter.Node, parent: tree_sitter.Node) -> bool:
        """Whether a pointer is kept where it is not followed; `parent` is what lies around all that is still the pointer."""
        while parent.type in ("initializer_list", "initializer_pair") and parent.parent is not None:
            parent = parent.parent
        if node.parent is not None and node.parent.type == "pointer_expression" and node.type == "identifier":
            return text(node.parent).startswith("&")
        if parent.type == "assignment_expression":
            left = parent.child_by_field_name("left")
            return left is not None and left.type not in ("identifier", "parenthesized_expression")
        if parent.type == "init_declarator":
            declarator = parent.child_by_field_name("declarator")
            kind = declared_type(parent)
            pointer = declarator is not None and declarator.type.endswith(("pointer_declarator", "array_declarator"))
            return not (
                pointer or "auto" in kind or _NUMBERS.fullmatch(kind) or "reference" in getattr(declarator, "type", "")
            )
        return parent.type in ("lambda_capture_initializer", "compound_literal_expression")

    def _classify_pointer(self, node: tree_sitter.Node, access: Access) -> None:
        """A use of the pointer itself: an argument, an alias that is followed, or something that cannot be."""
        outer = call_around(node)
        if outer is None:
            parent = node.parent
            while parent is not None and keeps_pointer(parent):
                parent = parent.parent
            if parent is not None and parent.type == "init_declarator" and _CONTAINERS.match(declared_type(parent)):
                access.reads.append((node, ""))
                return
            if parent is None or (value_only(node) and not self._meets_an_operator(node)):
                return
            kept = parent.type.endswith(("declarator", "declaration")) or parent.type in _FOLLOWED
            if not kept or self._hides(node, parent) or self._computed_with(node):
                access.hidden.append(node)
            return
        call, name, position = outer
        if name in self.functions:
            return
        if name == "asm" and _LOADS.search(text(call)):
            access.reads.append((node, ""))
        elif (there := self.beside.get((name, position))) is not None:
            access.reads += [(node, "")] if there.unclear or there.looked_at else []
            access.stores += [(node, "")] if there.stores or there.fills or there.updates else []
        elif any(_points_to_const(helper, position) for helper in self.outside.get(name, ())):
            access.reads.append((node, ""))
        elif name == "asm" or name in self.outside:
            access.unclear.append(node)
        elif _HOLDERS.fullmatch(name):
            access.hidden.append(node)
        elif _UPDATERS.fullmatch(name):
            self._update(node, "", call, access)
        elif _FILLS.fullmatch(name) and position == 0:
            access.fills.append(call)
        elif _READERS.fullmatch(name) or position in _read_arguments(name, call):
            access.reads.append((node, ""))
        elif name in _READ_ARGUMENTS:
            access.fills.append(call)
        elif not (_FILLS.fullmatch(name) or _WRITERS.fullmatch(name)):
            access.hidden.append(node)

    def _meets_an_operator(self, node: tree_sitter.Node) -> bool:
        """Whether an operator that the text defines could take the pointer: beside something that is no pointer or number."""
        current = node
        for around in ancestors(node) if self.operators else ():
            if around.type in ("binary_expression", "comma_expression"):
                others = [child for child in around.named_children if child != current]
                if not all(other.type in ("number_literal", "null") or self.buffers(other) for other in others):
                    return True
            if not keeps_pointer(around):
                return False
            current = around
        return False

    def _computed_with(self, node: tree_sitter.Node) -> bool:
        """Whether an address is more than moved: a distance to another buffer, or arithmetic on its number."""
        for around in ancestors(node):
            if not keeps_pointer(around):
                return False
            if around.type == "binary_expression":
                left, right = around.child_by_field_name("left"), around.child_by_field_name("right")
                if text(around.child_by_field_name("operator")) not in ("+", "-"):
                    return True
                if self.buffers(left) and self.buffers(right) and self.buffers(left) != self.buffers(right):
                    return True
        return False
