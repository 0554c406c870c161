"""Whether a read of a buffer can only see what the same call has stored there.

A store covers a read of the same element behind it where it must have happened: under no condition that does not hold for
the read too, in no loop that the read is not in, or in one that is written like a loop around the read; and where what
names the element has not changed in between. Everything else could see what an earlier call left.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import tree_sitter

from kernelwright.screen.pointers import ancestors, element
from kernelwright.screen.scope import Names, text
from kernelwright.source import walk

_CONDITIONS = {
    "if_statement", "switch_statement", "conditional_expression", "lambda_expression", "function_definition", "catch_clause",
    "sizeof_expression", "alignof_expression", "decltype", "noexcept", "requires_expression",
}  # fmt: skip
_LOOPS = {"for_statement", "for_range_loop", "while_statement", "do_statement"}
_LEAVES = {"break_statement", "continue_statement", "return_statement", "goto_statement", "co_return_statement"}
MOST = 12
"""Stores to one element that are looked at, earliest first; what people write has one or two."""
Store = tuple[tree_sitter.Node, str]


@dataclass(frozen=True)
class _Place:
    """Where a store or read stands: what decides whether it happens."""

    condition: int
    """The innermost condition around it, 0 for none."""
    loops: tuple[tuple[int, str], ...]
    """The loops inside that condition, innermost first: id and text of the head."""


class Coverage:
    """Answers for one text; `names` says which declaration each name in it means."""

    def __init__(self, root: tree_sitter.Node, names: Names) -> None:
        self.root = root
        self.names = names

    def uncovered_reads(self, stores: Sequence[Store], reads: Sequence[Store]) -> Iterator[tree_sitter.Node]:
        """Reads that could see what the buffer held before this call."""
        known: dict[str, dict[tuple[int, _Place], tree_sitter.Node]] = defaultdict(dict)
        for node, index in stores if reads else ():
            there = known[self._element(node, index)]
            if len(there) < MOST:
                there.setdefault((len(there), _place(node)), node)
        for node, index in reads:
            candidates = known.get(self._element(node, index), {}) if _plain(node) else {}
            if not any(self._covers(store, place, node) for (_, place), store in candidates.items()):
                yield node

    def uncovered_updates(
        self, stores: Sequence[tree_sitter.Node], updates: Sequence[tree_sitter.Node]
    ) -> Iterator[tree_sitter.Node]:
        """Updates (`c[i] += …`) with no store before them whose conditions hold for them too, to whatever element: they
        may add to what was there, and cannot look at it."""
        first: dict[int, int] = {}
        for store in stores if updates else ():
            condition = _conditions(store)[0]
            first[condition] = min(first.get(condition, done(store)), done(store))
        for node in updates:
            if not any(first.get(condition, node.start_byte + 1) <= node.start_byte for condition in _conditions(node)):
                yield node

    def _covers(self, store: tree_sitter.Node, place: _Place, read: tree_sitter.Node) -> bool:
        around = [(node.id, _head(node)) for node in ancestors(read) if node.type in _CONDITIONS | _LOOPS]
        ids, heads = {id_ for id_, _ in around}, {head for _, head in around}
        if done(store) > read.start_byte or (place.condition and place.condition not in ids):
            return False
        own = [(id_, head) for id_, head in place.loops if id_ not in ids]
        if any(not head or head not in heads for _, head in own) or (own and self._may_leave(store, own[-1][0])):
            return False
        return not self._jumps and not self._renamed(store, read)

    def _renamed(self, store: tree_sitter.Node, read: tree_sitter.Node) -> bool:
        """Whether a name in the element's expression may mean another value at the read than it did at the store."""
        for name in _names_in(read):
            positions = self._changes.get(text(name), [])
            at = bisect.bisect_left(positions, done(store))
            if at < len(positions) and positions[at] < read.start_byte:
                return True
        return False

    def _element(self, node: tree_sitter.Node, index: str) -> str:
        """The element that a store or read means: its index as written, and which declarations its names mean."""
        means = []
        for name in _names_in(node):
            declared = self.names.local.get(name.id)
            loop = declared.parent if declared is not None else None
            if declared is not None and loop is not None and loop.type == "for_statement":
                means.append(_head(loop))
            elif declared is not None:
                means.append(str(declared.id))
        return "|".join((index, *means))

    @cached_property
    def _changes(self) -> dict[str, list[int]]:
        """Where each variable is set, counted, or has its address taken: positions in order, heads of loops left out."""
        found: dict[str, list[int]] = defaultdict(list)
        for node in walk(self.root):
            if node.type == "assignment_expression":
                target = node.child_by_field_name("left")
            elif node.type == "update_expression" or (node.type == "pointer_expression" and text(node).startswith("&")):
                target = node.child_by_field_name("argument")
                while target is not None and target.type == "unary_expression":
                    target = target.child_by_field_name("argument")
            elif node.type == "init_declarator" and "reference" in getattr(
                node.child_by_field_name("declarator"), "type", ""
            ):
                target = node.child_by_field_name("value")
            else:
                continue
            head = node.parent is not None and node.parent.type == "for_statement"
            if target is not None and target.type == "identifier" and not head:
                found[text(target)].append(node.start_byte)
        return {name: sorted(positions) for name, positions in found.items()}

    @cached_property
    def _jumps(self) -> bool:
        return any(node.type == "goto_statement" for node in walk(self.root))

    def _may_leave(self, store: tree_sitter.Node, loop: int) -> bool:
        """Whether something in front of a store leaves the round of the loop that it stands in."""
        around = next(node for node in ancestors(store) if node.id == loop)
        return any(node.type in _LEAVES and node.start_byte < store.start_byte for node in walk(around))


def done(store: tree_sitter.Node) -> int:
    """Where a store has happened: behind its assignment, whose right side still sees the old value."""
    return next(
        (around.end_byte for around in ancestors(store) if around.type == "assignment_expression"), store.start_byte
    )


def _conditions(node: tree_sitter.Node) -> list[int]:
    """The ids of the conditions that a node stands under, innermost first, 0 last: none."""
    return [*(around.id for around in ancestors(node) if _is_condition(around) or around.type == "while_statement"), 0]


def _is_condition(node: tree_sitter.Node) -> bool:
    if node.type == "binary_expression":
        return text(node.child_by_field_name("operator")) in ("&&", "||", "and", "or")
    return node.type in _CONDITIONS


def _place(node: tree_sitter.Node) -> _Place:
    loops: list[tuple[int, str]] = []
    for around in ancestors(node):
        if _is_condition(around):
            return _Place(around.id, tuple(loops))
        if around.type in _LOOPS:
            loops.append((around.id, _head(around)))
    return _Place(0, tuple(loops))


def _head(node: tree_sitter.Node) -> str:
    """A for loop's text up to its body, spaces left out; other loops are never like one another."""
    body = node.child_by_field_name("body")
    if node.type not in ("for_statement", "for_range_loop") or body is None:
        return ""
    return "".join(text(node).encode()[: body.start_byte - node.start_byte].decode(errors="replace").split())


def _names_in(node: tree_sitter.Node) -> list[tree_sitter.Node]:
    """The names in the element expression around a pointer's name, itself included."""
    place, _ = element(node)
    return [inner for inner in walk(place or node) if inner.type == "identifier"]


def _plain(node: tree_sitter.Node) -> bool:
    """Whether an element is named by numbers and variables that stay as they are: no calls, counts or volatiles."""
    place, _ = element(node)
    kinds = {inner.type for inner in walk(place or node)}
    return not kinds & {
        "call_expression",
        "update_expression",
        "assignment_expression",
        "lambda_expression",
        "comma_expression",
    }
