"""Rules that run the iterations of a C++ loop together: in the lanes of a vector, or on several threads."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from kernelwright.policy.rules.accesses import NO_OVERLAP, accesses, moves, one_element_each
from kernelwright.policy.rules.arithmetic import scopes
from kernelwright.policy.rules.declared import declarations
from kernelwright.policy.rules.effects import effects
from kernelwright.policy.rules.loops import Count, counted, innermost_counts, settled
from kernelwright.policy.rules.names import Names
from kernelwright.policy.rules.rule import CPP, Rule, Variant, only
from kernelwright.policy.rules.syntax import (
    LOOPS,
    Site,
    ancestors,
    below,
    child,
    insert_before,
    may_precede,
    operator,
    pragmas,
    text_of,
)


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


def _simd_variants(site: Site) -> list[Variant]:
    edits = []
    for count, names in innermost_counts(site):
        clauses = _independent(count, names) if may_precede(site, count.loop) else None
        if clauses is not None:
            edits.append(insert_before(site, count.loop, f"#pragma omp simd{clauses}"))
    return [Variant("", tuple(edits), _openmp(site, "-fopenmp-simd"))] if edits else []


def _independent(count: Count, names: Names) -> str | None:
    """The reduction clauses with which a loop's iterations are independent; None where they are not, or do nothing."""
    changed, found, sums = settled(count, names), accesses(count.body), _sums(count, names)
    if changed is None or found is None or sums is None or changed.jumps or not _plain(count, names):
        return None
    inner = list(declarations(count.body))
    own = {declared.name for declared in inner if declared.arrays and not declared.pointers}
    shared = [access for access in found if access.array not in own]
    stored = [access for access in shared if access.stored]
    if changed.stored - own - {access.array for access in stored} or not one_element_each(shared, names):
        return None
    others = {declared.name for declared in inner}
    apart = all(moves(access, count.variable, others) for access in stored)
    return sums.clauses if apart and (stored or sums.names) else None


def _openmp(site: Site, flag: str) -> tuple[str, ...]:
    return () if {"-fopenmp", "-fopenmp-simd"} & set(site.flags) else (flag,)


def _plain(count: Count, names: Names) -> bool:
    """A loop whose own counter goes up by one to a whole number, with nothing in it that outlives an iteration."""
    declared = names.find(count.variable)
    lasting = any(d.qualifiers & {"static", "thread_local", "volatile"} for d in declarations(count.body))
    whole = declared is not None and declared.levels == 0 and names.kind(count.bound) == "int"
    return count.by_one and count.declared and whole and not lasting


SIMD = Rule(
    "omp-simd", (CPP,),
    "an innermost counting loop without unknown calls, jumps or pointer dereferences, each of whose stored arrays is named "
    "by one element that moves with the loop variable, and whose outer scalars are only summed (a reduction clause is added)",
    "it tells the compiler that iterations are independent, which it could not prove from the pointers, and lets it "
    "vectorise a sum in another order",
    _simd_variants, gain=1.12, risk=3, assumes=f"{NO_OVERLAP}; sums may be taken in another order",
)  # fmt: skip


def _parallel_variants(site: Site) -> list[Variant]:
    if "-fopenmp" not in site.flags and not re.search(rb"#\s*pragma\s+omp\b", site.data):
        return []
    edits = []
    for loop, names in scopes(site, "for_statement"):
        if any(above.type in LOOPS for above in ancestors(loop)) or not may_precede(site, loop) or _in_parallel(loop):
            continue
        count = counted(loop)
        nested = count is not None and next(below(count.body, *LOOPS), None) is not None
        if count is None or not nested or next(below(count.body, "preproc_call"), None) is not None:
            continue
        clauses = _independent(count, names)
        if clauses is not None:
            edits.append(insert_before(site, loop, f"#pragma omp parallel for{clauses}"))
    return only(edits)


def _in_parallel(node: Node) -> bool:
    """Whether an OpenMP directive stands before a statement or one that holds it."""
    return any(re.search(r"#\s*pragma\s+omp\b", text) for above in (node, *ancestors(node)) for text in pragmas(above))


PARALLEL = Rule(
    "omp-parallel-for", (CPP,),
    "the program uses OpenMP already; an outermost counting loop that holds another, outside any OpenMP construct, without "
    "unknown calls or jumps, whose stores each name one element that moves with the loop variable",
    "its iterations are independent, and the other cores are idle meanwhile",
    _parallel_variants, gain=1.5, risk=4,
    assumes=f"{NO_OVERLAP}; the function is not called from a parallel region; sums may be taken in another order",
)  # fmt: skip

RULES = (SIMD, PARALLEL)
