"""The rules about buffers: what the original region only writes is not read, what it only reads is not written.

A kernel that reads its own old output can skip the work when the result is there already. Reading back what the same
call has stored is honest and passes: behind a store with the same index, or an update (`c[i] += …`) behind any store,
where that store stands under no condition that does not hold for the read too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import tree_sitter

from kernelwright.screen.context import Change, Finding
from kernelwright.screen.pointers import (
    ancestors,
    call_around,
    callee,
    declared_type,
    element,
    keeps_pointer,
    parameters,
    pointer_names,
    step_to_base,
)
from kernelwright.screen.scope import Names, declarator_names, read_names, text
from kernelwright.source import function_name, walk

_READERS = re.compile(
    r"(?!.*(?:store|__st|_st_))(?:.*(?:load|ldg|ldc|lds|ldlu|gather|compare|reduce|accumulate|equal"
    r"|inner_product|count|find|max_element|min_element).*|dot|memcmp)",
    re.IGNORECASE,
)
_UPDATERS = re.compile(r"(?!.*prefetch).*(?:atomic|fetch|exchange).*", re.IGNORECASE)
_READ_ARGUMENTS = {
    "memcpy": (1,), "memmove": (1,), "__builtin_memcpy": (1,), "copy": (0, 1), "copy_n": (0,), "transform": (0, 1),
}  # fmt: skip
_CONTAINERS = re.compile(r"(?:std::)?(?:vector|deque|list|valarray|basic_string|set|multiset)\b")
_HOLDERS = re.compile(
    r"pair|tuple|make_(?:pair|tuple|any|optional)|forward_as_tuple|tie|c?ref|addressof|bind\w*|exchange"
)
_NUMBERS = re.compile(
    r"(?:const |std::|unsigned |signed |long |short )*(?:int|long|char|bool|size_t|u?int(?:ptr|64|32)_t|ptrdiff_t|unsigned)"
)
_LOADS = re.compile(r"\b(?:ld|ldu|atom|red|ldmatrix)\.")
_FILLS = re.compile(r"(?:__builtin_)?memset|(?:cuda|hip)Memset(?:Async)?|fill(?:_n)?")
_CONDITIONS = {
    "if_statement", "switch_statement", "conditional_expression", "while_statement", "lambda_expression",
    "function_definition",
}  # fmt: skip
_ANY = "*"
"""The index of an update, which any store before it covers; no index is written so."""
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

    @property
    def only_read(self) -> bool:
        return bool(self.reads) and not (self.stores or self.updates or self.fills or self.unclear or self.hidden)

    @property
    def only_written(self) -> bool:
        return bool(self.stores) and not (self.reads or self.updates or self.unclear or self.hidden)

    def uncovered(self) -> Iterator[tree_sitter.Node]:
        """Reads that could see what the buffer held before this call. `first` is where the first store stands, by its index
        (None: a fill, which covers every index) and the innermost condition around it."""
        first: dict[tuple[str | None, int], int] = {}
        for store, index in [*((fill, None) for fill in self.fills), *self.stores]:
            within = _conditions(store)[0]
            for key in (index, within), (_ANY, within):
                first[key] = min(first.get(key, store.start_byte), store.start_byte)
        for node, index in [*self.reads, *((update, _ANY) for update in self.updates)]:
            behind = (first.get((stored, within)) for within in _conditions(node) for stored in {index, None})
            if not any(at is not None and at < node.start_byte for at in behind):
                yield node


def reads_and_writes_as_the_original_does(change: Change) -> Iterator[Finding]:
    """Buffers that the original only stores to are only stored to, or read back behind a store of the same call; buffers
    and variables of the surroundings that it only reads are not written."""
    helpers = change.outside.helpers
    old = _Accesses(change.old.root, change.old_names, helpers)
    beside: dict[Key, Access] = {}
    for code in change.outside.beside:
        beside |= _Accesses(code.root, read_names(code.root), helpers).found
    new = _Accesses(change.new.root, change.new_names, helpers, beside)
    if not new.settled:
        yield Finding(0, "it hands pointers on from one to the next too often", "use the buffers under their own names")
    for key, access in old.found.items():
        there = new.found.get(key, Access())
        for node in there.uncovered() if access.only_written else ():
            yield Finding(change.new.offset(node), f"it reads {_name(node)!r}, which the original region only writes",
                          "keep sums in local variables and store them at the end")  # fmt: skip
        for node in there.hidden if access.only_written else ():
            yield Finding(change.new.offset(node), f"it hides {_name(node)!r} in something else, which could read it",
                          "use the buffer under its own name")  # fmt: skip
        for node in [*(node for node, _ in there.stores), *there.updates] if access.only_read else ():
            yield Finding(change.new.offset(node), f"it writes {_name(node)!r}, which the original region only reads",
                          "write to local variables and to the original's outputs")  # fmt: skip


def _name(node: tree_sitter.Node) -> str:
    return next(text(inner) for inner in walk(node) if inner.type == "identifier")


def _conditions(node: tree_sitter.Node) -> list[int]:
    """The ids of the conditions that a node stands under, innermost first, 0 last: none.

    A store holds wherever a read is when the innermost condition around the store is around the read too.
    """
    return [*(around.id for around in ancestors(node) if around.type in _CONDITIONS), 0]


def _points_to_const(helper: tree_sitter.Node, position: int) -> bool:
    """Whether a function of the surroundings takes this argument as `const T*`: it can only read what is there."""
    taken = parameters(helper)[position : position + 1]
    return any(pointer_names(one) and any(text(child) == "const" for child in one.children) for one in taken)


class _Accesses:
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
        self.settled = True
        """Whether every alias was followed to its end."""
        self._enter_functions()
        self._follow_all(root)
        for node in walk(root):
            if node.type == "identifier":
                self._classify(node)

    def _enter_functions(self) -> None:
        for name, definitions in self.functions.items():
            for definition in definitions:
                for index, parameter in enumerate(parameters(definition)):
                    for declared in pointer_names(parameter):
                        self.pointers[parameter.id, declared].add((name, index))

    def _follow_all(self, root: tree_sitter.Node) -> None:
        """Until nothing new is found: an alias of an alias needs a second look, in either order."""
        kinds = ("init_declarator", "assignment_expression", "call_expression")
        nodes, known = [node for node in walk(root) if node.type in kinds], -1
        for _ in range(MAX_LOOKS):
            if known == (known := sum(map(len, [*self.pointers.values(), *self.references.values()]))):
                return
            for node in nodes:
                self._follow_call(node) if node.type == "call_expression" else self._follow_alias(node)
            nodes.reverse()
        self.settled = False

    def _follow_alias(self, node: tree_sitter.Node) -> None:
        left = node.child_by_field_name("declarator") or node.child_by_field_name("left")
        right = node.child_by_field_name("value") or node.child_by_field_name("right")
        if left is None or right is None:
            return
        if left.type == "reference_declarator" and node.parent is not None:
            base = right.child_by_field_name("argument") if right.type == "subscript_expression" else None
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
            callee = node.parent is not None and node.parent.child_by_field_name("function") == node
            return {("", text(node))} if node.id in self.free and not callee else set()
        if node.type == "initializer_list":
            return {key for child in node.named_children for key in self.buffers(child)}
        if node.type == "comma_expression":
            return self.buffers(node.child_by_field_name("right"))
        if node.type == "conditional_expression":
            return self.buffers(node.child_by_field_name("consequence")) | self.buffers(
                node.child_by_field_name("alternative")
            )
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
            access.stores.append((node, index)) if plain else access.updates.append(node)
        elif kind == "update_expression":
            access.updates.append(node)
        elif kind == "pointer_expression" and text(parent).startswith("&"):
            self._classify_pointer(parent or node, access)
        elif kind == "init_declarator" and parent is not None and parent.child_by_field_name("declarator") is not None and (
            parent.child_by_field_name("declarator") or node).type == "reference_declarator":  # fmt: skip
            return
        elif kind == "argument_list" and self._taken_by_reference(place):
            access.unclear.append(node)
        else:
            access.reads.append((node, index))

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
            followed = ("assignment_expression", "update_expression")
            if parent is not None and self._hides(node, parent):
                access.hidden.append(node)
            elif parent is not None and not parent.type.endswith(("declarator", "declaration", *followed)):
                access.unclear.append(node)
            return
        call, name, position = outer
        if name in self.functions:
            return
        if name == "asm" and _LOADS.search(text(call)):
            access.reads.append((node, ""))
        elif (there := self.beside.get((name, position))) is not None:
            access.reads += [(node, "")] if there.unclear or any(there.uncovered()) else []
            access.stores += [(node, "")] if there.stores or there.fills or there.updates else []
        elif any(_points_to_const(helper, position) for helper in self.outside.get(name, ())):
            access.reads.append((node, ""))
        elif name == "asm" or name in self.outside:
            access.unclear.append(node)
        elif _HOLDERS.fullmatch(name):
            access.hidden.append(node)
        elif _UPDATERS.fullmatch(name):
            access.updates.append(node)
        elif _FILLS.fullmatch(name) and position == 0:
            access.fills.append(call)
        elif _READERS.fullmatch(name) or position in _READ_ARGUMENTS.get(name, ()):
            access.reads.append((node, ""))
        elif name in _READ_ARGUMENTS:
            access.fills.append(call)
