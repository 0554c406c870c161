"""Rules that change the order of nested C++ loops, so that the innermost one walks through memory in steps of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from kernelwright.policy.rules.accesses import NO_OVERLAP, Access, accesses, leads, moves, one_element_each, stride
from kernelwright.policy.rules.arithmetic import scopes
from kernelwright.policy.rules.declared import declarations
from kernelwright.policy.rules.effects import effects
from kernelwright.policy.rules.loops import Count, counted, innermost_counts, settled
from kernelwright.policy.rules.names import Names
from kernelwright.policy.rules.rule import CPP, Rule, Variant, only
from kernelwright.policy.rules.syntax import (
    Edit,
    Site,
    ancestors,
    child,
    identifiers,
    may_precede,
    operator,
    pragmas,
    pure,
    text_of,
)


def _nested(site: Site) -> Iterator[tuple[Count, Count, Names]]:
    """Perfectly nested pairs whose headers do not depend on each other, the inner one innermost."""
    for inner, names in innermost_counts(site):
        outer_loop = inner.loop.parent
        if outer_loop is not None and outer_loop.type == "compound_statement":
            outer_loop = outer_loop.parent
        outer = counted(outer_loop) if outer_loop is not None and outer_loop.type == "for_statement" else None
        if outer is None or len(outer.statements) != 1 or not site.holds(outer.loop):
            continue
        if _swappable(outer, inner):
            yield outer, inner, names


def _swappable(outer: Count, inner: Count) -> bool:
    """Whether two loops' headers do not depend on each other and each declares its own variable."""
    header = {name for part in (inner.start, inner.bound, outer.start, outer.bound) for name in identifiers(part)}
    whole = outer.declared and inner.declared and outer.by_one and inner.by_one
    return whole and outer.variable != inner.variable and not {outer.variable, inner.variable} & header


def _interchange_variants(site: Site) -> list[Variant]:
    edits = []
    for outer, inner, names in _nested(site):
        found, changed = accesses(inner.body), settled(inner, names)
        if found is None or changed is None or changed.jumps or not one_element_each(found, names):
            continue
        if not _interchangeable(outer, inner, found):
            continue
        if changed.touched & (identifiers(outer.bound) | identifiers(inner.bound)) or not _unbound(outer, inner, found):
            continue
        for mine, other in ((outer, inner), (inner, outer)):
            at = child(mine.loop, "initializer")
            assert at is not None
            edits.append(Edit(at.start_byte, at.start_byte + len(mine.header.encode()), other.header))
    return only(edits)


def _unbound(outer: Count, inner: Count, found: list[Access]) -> bool:
    """Whether no pragma ties a thread or a lane to one of the loops, unless each iteration has its own elements."""
    above = [text for node in ancestors(outer.loop) for text in pragmas(node)]
    here = pragmas(outer.loop)
    if pragmas(inner.loop) or any("collapse" in text for text in (*above, *here)):
        return False
    own = all(stride(access, count.variable) != "none"
              for access in found if access.stored for count in (outer, inner))  # fmt: skip
    named = any(re.search(rf"\b({outer.variable}|{inner.variable}|simd)\b", text) for text in here)
    return not here or (own and not named)


def _interchangeable(outer: Count, inner: Count, found: list[Access]) -> bool:
    """Legal: scalars stay inside, and elements do not depend on the order. Worth it: the inner stride is shorter."""
    own = {declared.name for declared in declarations(inner.body)}
    changed = effects(inner.body)
    stored = {access.array for access in found if access.stored}
    if changed.modified - own or changed.stored - stored:
        return False
    if not all(_order_free(access, outer, inner, own) for access in found if access.stored):
        return False
    return _cost(found, outer.variable) < _cost(found, inner.variable)


def _order_free(access: Access, outer: Count, inner: Count, own: set[str]) -> bool:
    """Each element is met once, or once for each value of one variable, whose order the other one cannot change."""
    moved = [count for count in (outer, inner) if stride(access, count.variable) != "none"]
    loose = own | {c.variable for c in moved if not leads(access, c.variable)}
    alone = all(moves(access, c.variable, loose - {c.variable}) for c in moved)
    return alone and (len(moved) == 2 or (access.stored in ("+=", "-=", "*=") and len(moved) == 1))


def _cost(found: list[Access], variable: str) -> int:
    return sum({"none": 0, "unit": 1, "far": 8}[stride(access, variable)] for access in found)


INTERCHANGE = Rule(
    "loop-order", (CPP,),
    "two perfectly nested counting loops whose bounds do not depend on each other; the body only stores to array elements, "
    "each array by one element, which is met once or only summed into; and the accesses are nearer in the other order",
    "the inner loop then walks through memory in steps of one element: whole cache lines are used, and it vectorises",
    _interchange_variants, gain=1.6, risk=2, assumes=NO_OVERLAP,
)  # fmt: skip


@dataclass(frozen=True)
class _Sum:
    """`for j { T s = start; for k s += term; target = s; }` with the texts that its two loops in the other order need."""

    outer: Count
    inner: Count
    start: str
    target: str
    sign: str
    term: str


def _sum_variants(site: Site) -> list[Variant]:
    edits = []
    for loop, names in scopes(site, "for_statement"):
        found = _sum_of(loop, names) if may_precede(site, loop) else None
        if found is not None:
            edits.append(_split(site, found))
    return only(edits)


def _sum_of(loop: Node, names: Names) -> _Sum | None:
    outer = counted(loop)
    shape = [node.type for node in outer.statements] if outer is not None else []
    if outer is None or shape != ["declaration", "for_statement", "expression_statement"]:
        return None
    first, middle, last = outer.statements
    inner = counted(middle)
    if inner is None or not _swappable(outer, inner) or len(inner.statements) != 1:
        return None
    start, added, stored = child(first, "declarator"), inner.statements[0], last.named_children[0]
    term, adding = _assigned(added), _assigned(stored)
    if start is None or term is None or adding is None or adding[1] != "=" or term[1] not in ("+=", "-="):
        return None
    value, name = child(start, "value"), text_of(term[0])
    if value is None or value.type != "number_literal" or text_of(child(start, "declarator") or start) != name:
        return None
    same = text_of(adding[2]) == name and names.typed(adding[0]) == names.typed(term[0]) is not None
    if not same or not pure(term[2]) or not pure(adding[0]) or name in identifiers(term[2]) | identifiers(adding[0]):
        return None
    if not _worth_splitting(outer, inner, accesses(last), accesses(added), names):
        return None
    return _Sum(outer, inner, text_of(value), text_of(adding[0]), term[1], text_of(term[2]))


def _assigned(statement: Node) -> tuple[Node, str, Node] | None:
    """An assignment that is a statement: its target, operator and value."""
    node = statement.named_children[0] if statement.named_child_count == 1 else statement
    left, right = child(node, "left"), child(node, "right")
    found = node.type == "assignment_expression" and left is not None and right is not None
    return (left, operator(node), right) if found and left is not None and right is not None else None


def _worth_splitting(
    outer: Count, inner: Count, target: list[Access] | None, read: list[Access] | None, names: Names
) -> bool:
    """Legal: the element that gets the sum is another for each outer value, and no term reads its array."""
    if target is None or read is None or len(target) != 1 or not moves(target[0], outer.variable, {inner.variable}):
        return False
    if names.memory(target[0].array) in {names.memory(access.array) for access in read}:
        return False
    steady = stride(target[0], inner.variable) == "none"
    return steady and _cost([*read, *target], outer.variable) < _cost(read, inner.variable)


def _split(site: Site, found: _Sum) -> Edit:
    loop = found.outer.loop
    line_start = site.data.rfind(b"\n", 0, loop.start_byte) + 1
    lead = site.data[line_start : loop.start_byte].decode("utf-8", errors="surrogateescape")
    lead = lead if not lead.strip() else ""
    lines = (
        f"for ({found.outer.header})",
        f"  {found.target} = {found.start};",
        f"for ({found.inner.header})",
        f"  for ({found.outer.header})",
        f"    {found.target} {found.sign} {found.term};",
    )
    return Edit(loop.start_byte, loop.end_byte, f"\n{lead}".join(lines))


SUM_ORDER = Rule(
    "sum-order", (CPP,),
    "a counting loop that sums into a local of its own in an inner counting loop and then stores the sum to an element of "
    "the same type, another one each time, whose array the sum does not read; and the accesses are nearer in the other order",
    "summing into the elements themselves lets the loops change places: the inner one walks through memory in steps of one "
    "element and vectorises, and each element's terms keep their order",
    _sum_variants, gain=1.5, risk=2, assumes=NO_OVERLAP,
)  # fmt: skip

RULES = (INTERCHANGE, SUM_ORDER)
