"""The rule that changes the order of nested C++ loops, so that the innermost one walks through memory in steps of one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernelwright.policy.rules.accesses import NO_OVERLAP, Access, accesses, leads, stride
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
    pragmas,
)


def _nested(site: Site) -> Iterator[tuple[Count, Count, Names]]:
    """Perfectly nested pairs whose headers do not depend on each other, the inner one innermost."""
    for inner, names in innermost_counts(site):
        outer_loop = inner.loop.parent
        if outer_loop is not None and outer_loop.type == "compound_statement":
            outer_loop = outer_loop.parent
        outer = counted(outer_loop) if outer_loop is not None and outer_loop.type == "for_statement" else None
        if (
            outer is None
            or len(outer.statements) != 1
            or not site.holds(outer.loop)
            or outer.variable == inner.variable
        ):
            continue
        header = {name for part in (inner.start, inner.bound, outer.start, outer.bound) for name in identifiers(part)}
        whole = outer.declared and inner.declared and outer.by_one and inner.by_one
        if whole and not {outer.variable, inner.variable} & header:
            yield outer, inner, names


def _interchange_variants(site: Site) -> list[Variant]:
    edits = []
    for outer, inner, _ in _nested(site):
        found, changed = accesses(inner.body), settled(inner)
        if found is None or changed is None or changed.jumps or not _interchangeable(outer, inner, found):
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
    """Legal: scalars stay inside, and each stored array is named by one element. Worth it: the inner stride is shorter."""
    own = {declared.name for declared in declarations(inner.body)}
    changed = effects(inner.body)
    stored = {access.array for access in found if access.stored}
    elements = {(access.array, access.element) for access in found if access.array in stored}
    if changed.modified - own or changed.stored - stored or len(elements) != len(stored):
        return False
    if not all(_order_free(access, outer, inner) for access in found if access.stored):
        return False
    return _cost(found, outer.variable) < _cost(found, inner.variable)


def _order_free(access: Access, outer: Count, inner: Count) -> bool:
    """Each element is met once, or once for each value of one variable, whose order the other one cannot change."""
    moved = [count for count in (outer, inner) if stride(access, count.variable) != "none"]
    alone = all(stride(access, c.variable) == "unit" or leads(access, c.variable) for c in moved)
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

RULES = (INTERCHANGE,)
