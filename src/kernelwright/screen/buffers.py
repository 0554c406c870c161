"""The rules about buffers: what the original region only writes is not read, what it only reads is not written.

A kernel that reads its own old output can skip the work when the result is there already. Reading back what the same
call has stored is honest and passes: behind a store with the same index, or an update (`c[i] += …`) behind any store,
where that store stands under no condition that does not hold for the read too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import tree_sitter

from kernelwright.screen.accesses import Access, Accesses, Key
from kernelwright.screen.context import Change, Finding
from kernelwright.screen.expansion import opened
from kernelwright.screen.pointers import ancestors, callee
from kernelwright.screen.scope import read_names, text
from kernelwright.source import walk


def reads_and_writes_as_the_original_does(change: Change) -> Iterator[Finding]:
    """Buffers that the original only stores to are only stored to, or read back behind a store of the same call; buffers
    and variables of the surroundings that it only reads are not written."""
    helpers, macros = change.outside.helpers, change.outside.definitions
    beside: dict[Key, Access] = {}
    for code in change.outside.beside:
        root = opened(code, macros).root
        beside |= Accesses(root, read_names(root), helpers).looked()
    old, new = change.old_opened.root, change.new_opened.root
    before = Accesses(old, read_names(old, change.value_names), helpers)
    after = Accesses(new, read_names(new, change.value_names), helpers, beside)
    yield from _differences(before, after, lambda node: change.place(change.new_opened.offset(node)))


def _differences(old: Accesses, new: Accesses, place: Callable[[tree_sitter.Node], int]) -> Iterator[Finding]:
    if not new.settled:
        yield Finding(0, "it hands pointers on from one to the next too often", "use the buffers under their own names")
    for key, access in old.found.items():
        there = new.found.get(key, Access())
        for node in new.uncovered(there) if access.only_written else ():
            yield Finding(place(node), f"it reads {_name(node)!r}, which the original region only writes",
                          "keep sums in local variables and store them at the end")  # fmt: skip
        for node in there.hidden if access.only_written else ():
            yield Finding(place(node), f"it hides {_name(node)!r} in something else, which could read it",
                          "use the buffer under its own name")  # fmt: skip
        for node in [*(node for node, _ in there.stores), *there.updates] if access.only_read else ():
            yield Finding(place(node), f"it writes {_name(node)!r}, which the original region only reads",
                          "write to local variables and to the original's outputs")  # fmt: skip
        filled = [call.child_by_field_name("arguments") or call for call in there.fills]
        for node in [*filled, *filter(_loses_const, there.unclear)] if access.only_read else ():
            yield Finding(place(node), f"it hands {_name(node)!r}, which the original region only reads, to what writes",
                          "write to local variables and to the original's outputs")  # fmt: skip


def _name(node: tree_sitter.Node) -> str:
    return next(
        text(inner)
        for inner in walk(node)
        if inner.type in ("identifier", "type_identifier") and not text(inner).endswith("_cast")
    )


def _loses_const(node: tree_sitter.Node) -> bool:
    """Whether a pointer is handed to a function of the surroundings by a cast that takes its const away."""
    for around in ancestors(node):
        if around.type == "argument_list" and not callee(around.parent or around).endswith("_cast"):
            return False
        kind = text(around.child_by_field_name("type")) if around.type == "cast_expression" else ""
        if ("*" in kind and "const" not in kind.split()) or callee(around).startswith("const_cast"):
            return True
    return False
