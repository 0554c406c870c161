"""Rules on loops of C++ as iterations that may run together or in another order: SIMD, threads, loop order.

What they share is a reading of a loop's memory accesses: which element each store names, and whether two iterations can
meet on one. Two arrays of different names are taken not to overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from kernelwright.policy.rules.arithmetic import scopes
from kernelwright.policy.rules.loops import Count, counted, innermost_counts, settled
from kernelwright.policy.rules.names import Names, declarations
from kernelwright.policy.rules.rule import CPP, Rule, Variant, only
from kernelwright.policy.rules.syntax import (
    LOOPS,
    Edit,
    Site,
    ancestors,
    below,
    child,
    effects,
    flat,
    identifiers,
    insert_before,
    may_precede,
    operator,
    strip,
    text_of,
)

_NO_OVERLAP = "arrays of different names do not overlap"


@dataclass(frozen=True)
class Access:
    """One array element that a body names: the array, its subscripts from the outermost in, and whether it is stored."""

    array: str
    subscripts: tuple[Node, ...]
    stored: str
    """The operator that stores it (`=`, `+=`, …); empty for a read."""

    @property
    def element(self) -> str:
        return "".join(f"[{flat(subscript)}]" for subscript in self.subscripts)


def accesses(body: Node) -> list[Access] | None:
    """Every array access of a body; None where one cannot be read, as with `*p` or `s->a[i]`."""
    found = []
    if next(below(body, "pointer_expression"), None) is not None:
        return None
    for node in below(body, "subscript_expression"):
        if (
            node.parent is not None
            and node.parent.type == "subscript_expression"
            and child(node.parent, "argument") == node
        ):
            continue
        subscripts, root = _subscripts(node)
        if root.type != "identifier":
            return None
        found.append(Access(text_of(root), subscripts, _store_operator(node)))
    return found


def _subscripts(node: Node) -> tuple[tuple[Node, ...], Node]:
    parts: list[Node] = []
    while node.type == "subscript_expression":
        indices, argument = child(node, "indices"), child(node, "argument")
        index = indices.named_children[0] if indices is not None and indices.named_child_count == 1 else node
        parts.insert(0, index)
        if argument is None or index is node:
            break
        node = strip(argument)
    return tuple(parts), node


def _store_operator(node: Node) -> str:
    above = node.parent
    while above is not None and above.type in ("parenthesized_expression", "field_expression"):
        node, above = above, above.parent
    if above is not None and above.type == "update_expression":
        return "+="
    if above is not None and above.type == "assignment_expression" and child(above, "left") == node:
        return operator(above)
    return ""


def _stride(access: Access, variable: str) -> str:
    """How an element moves with a variable: `none`, `unit` (the last subscript is v or v plus something), or `far`."""
    inside = [variable in identifiers(subscript) for subscript in access.subscripts]
    if not any(inside):
        return "none"
    return "unit" if not any(inside[:-1]) and _unit(access.subscripts[-1], variable) else "far"


def _unit(subscript: Node, variable: str) -> bool:
    subscript = strip(subscript)
    if text_of(subscript) == variable:
        return True
    left, right = child(subscript, "left"), child(subscript, "right")
    if subscript.type != "binary_expression" or operator(subscript) not in ("+", "-") or left is None or right is None:
        return False
    if variable in identifiers(left):
        return variable not in identifiers(right) and _unit(left, variable)
    return operator(subscript) == "+" and _unit(right, variable)


def _apart(found: list[Access], variable: str) -> bool:
    """Whether two iterations never meet: each stored array is named by one element only, which moves with `variable`."""
    stored = {access.array for access in found if access.stored}
    elements = {(access.array, access.element) for access in found if access.array in stored}
    moving = all(_stride(access, variable) == "unit" or _leads(access, variable)
                 for access in found if access.array in stored)  # fmt: skip
    return len(elements) == len(stored) and moving


def _leads(access: Access, variable: str) -> bool:
    """A subscript that is the variable alone, or the variable times something plus something: `a[v][j]`, `a[v * n + j]`."""
    word = re.escape(variable)
    for subscript in access.subscripts:
        text = flat(subscript)
        product = rf"\(?(?:{word}\*[\w.]+|[\w.]+\*{word})\)?"
        if text == variable or (re.fullmatch(rf"{product}(?:\+.*)?|.*\+{product}", text) and text.count(variable) >= 1
                                and len(re.findall(rf"\b{word}\b", text)) == 1):  # fmt: skip
            return True
    return False


@dataclass(frozen=True)
class Sums:
    """Scalars that a loop accumulates, by operator: `+` → names."""

    names: dict[str, str]

    @property
    def clauses(self) -> str:
        by = {sign: [n for n, s in self.names.items() if s == sign] for sign in sorted(set(self.names.values()))}
        return "".join(f" reduction({sign}:{', '.join(names)})" for sign, names in by.items())


def _sums(count: Count, names: Names) -> Sums | None:
    """The scalars from outside that the body assigns, where each is only added to (or multiplied); None otherwise."""
    inner = {declared.name for declared in declarations(count.body)}
    outer = effects(count.body).modified - inner - {count.variable}
    found = {}
    for name in sorted(outer):
        uses = [node for node in below(count.body, "identifier") if text_of(node) == name]
        signs = {_sum_sign(use) for use in uses}
        if len(signs) != 1 or "" in signs or names.kind(uses[0]) is None or names.local(name) is None:
            return None
        found[name] = signs.pop()
    return Sums(found)


def _sum_sign(use: Node) -> str:
    above = use.parent
    if above is None or above.type != "assignment_expression" or child(above, "left") != use:
        return ""
    in_statement = above.parent is not None and above.parent.type == "expression_statement"
    return {"+=": "+", "-=": "+", "*=": "*"}.get(operator(above), "") if in_statement else ""


def _statics(body: Node) -> bool:
    return any(declared.qualifiers & {"static", "thread_local", "volatile"} for declared in declarations(body))


def _simd_variants(site: Site) -> list[Variant]:
    edits = []
    for count, names in innermost_counts(site):
        changed, found = settled(count), accesses(count.body)
        if (
            changed is None
            or found is None
            or changed.jumps
            or not may_precede(site, count.loop)
            or _statics(count.body)
        ):
            continue
        sums = _sums(count, names)
        fields = effects(count.body).stored - {access.array for access in found if access.stored}
        if sums is None or fields or not _apart(found, count.variable) or not _int_counter(count, names):
            continue
        if any(access.stored for access in found) or sums.names:
            edits.append(insert_before(site, count.loop, f"#pragma omp simd{sums.clauses}"))
    return [Variant("", tuple(edits), _openmp(site, "-fopenmp-simd"))] if edits else []


def _openmp(site: Site, flag: str) -> tuple[str, ...]:
    return () if {"-fopenmp", "-fopenmp-simd"} & set(site.flags) else (flag,)


def _int_counter(count: Count, names: Names) -> bool:
    declared = names.find(count.variable)
    return count.by_one and count.declared and declared is not None and declared.levels == 0


SIMD = Rule(
    "omp-simd", (CPP,),
    "an innermost counting loop without unknown calls, jumps or pointer dereferences, each of whose stored arrays is named "
    "by one element that moves with the loop variable, and whose outer scalars are only summed (a reduction clause is added)",
    "it tells the compiler that iterations are independent, which it could not prove from the pointers, and lets it "
    "vectorise a sum in another order",
    _simd_variants, gain=1.12, risk=3, assumes=f"{_NO_OVERLAP}; sums may be taken in another order",
)  # fmt: skip


def _parallel_variants(site: Site) -> list[Variant]:
    if "-fopenmp" not in site.flags and not re.search(rb"#\s*pragma\s+omp\b", site.data):
        return []
    edits = []
    for loop, names in scopes(site, "for_statement"):
        if any(above.type in LOOPS for above in ancestors(loop)) or not may_precede(site, loop) or _in_parallel(loop):
            continue
        count = counted(loop)
        clauses = _parallel_clauses(count, names) if count is not None else None
        if clauses is not None:
            edits.append(insert_before(site, loop, f"#pragma omp parallel for{clauses}"))
    return only(edits)


def _parallel_clauses(count: Count, names: Names) -> str | None:
    changed, found = settled(count), accesses(count.body)
    if changed is None or found is None or changed.jumps or not _int_counter(count, names) or _statics(count.body):
        return None
    if next(below(count.body, *LOOPS), None) is None or any(above.type == "preproc_call" for above in below(
        count.body, "preproc_call")):  # fmt: skip
        return None
    sums = _sums(count, names)
    stored = [access for access in found if access.stored]
    inner = {declared.name for declared in declarations(count.body)}
    shared = [access for access in found if access.array not in inner]
    if sums is None or changed.stored - {access.array for access in stored} or not _apart(shared, count.variable):
        return None
    return sums.clauses if any(access.array not in inner for access in stored) or sums.names else None


def _in_parallel(node: Node) -> bool:
    """Whether an OpenMP directive stands before a statement or one that holds it."""
    return any(re.search(r"#\s*pragma\s+omp\b", text) for above in (node, *ancestors(node)) for text in _pragmas(above))


PARALLEL = Rule(
    "omp-parallel-for", (CPP,),
    "the program uses OpenMP already; an outermost counting loop that holds another, outside any OpenMP construct, without "
    "unknown calls or jumps, whose stores each name one element that moves with the loop variable",
    "its iterations are independent, and the other cores are idle meanwhile",
    _parallel_variants, gain=1.5, risk=4,
    assumes=f"{_NO_OVERLAP}; the function is not called from a parallel region; sums may be taken in another order",
)  # fmt: skip


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


def _pragmas(node: Node) -> list[str]:
    """The directives that stand right before a statement."""
    found, before = [], node.prev_named_sibling
    while before is not None and before.type in ("comment", "preproc_call"):
        found += [text_of(before)] if before.type == "preproc_call" else []
        before = before.prev_named_sibling
    return found


def _unbound(outer: Count, inner: Count, found: list[Access]) -> bool:
    """Whether no pragma ties a thread or a lane to one of the loops, unless each iteration has its own elements."""
    above = [text for node in ancestors(outer.loop) for text in _pragmas(node)]
    here = _pragmas(outer.loop)
    if _pragmas(inner.loop) or any("collapse" in text for text in (*above, *here)):
        return False
    own = all(_stride(access, count.variable) != "none"
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
    moved = [count for count in (outer, inner) if _stride(access, count.variable) != "none"]
    apart = all(_stride(access, c.variable) == "unit" or _leads(access, c.variable) for c in moved)
    return apart and (len(moved) == 2 or (access.stored in ("+=", "-=", "*=") and len(moved) == 1))


def _cost(found: list[Access], variable: str) -> int:
    return sum({"none": 0, "unit": 1, "far": 8}[_stride(access, variable)] for access in found)


INTERCHANGE = Rule(
    "loop-order", (CPP,),
    "two perfectly nested counting loops whose bounds do not depend on each other; the body only stores to array elements, "
    "each array by one element, which is met once or only summed into; and the accesses are nearer in the other order",
    "the inner loop then walks through memory in steps of one element: whole cache lines are used, and it vectorises",
    _interchange_variants, gain=1.6, risk=2, assumes=_NO_OVERLAP,
)  # fmt: skip

RULES = (INTERCHANGE, SIMD, PARALLEL)
