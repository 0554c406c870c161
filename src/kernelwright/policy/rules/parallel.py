"""Rules that run the iterations of a C++ loop together: in the lanes of a vector, or on several threads."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from kernelwright.policy.rules.accesses import NO_OVERLAP, accesses, apart
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
        if sums is None or fields or not apart(found, count.variable) or not _int_counter(count, names):
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
    if sums is None or changed.stored - {access.array for access in stored} or not apart(shared, count.variable):
        return None
    return sums.clauses if any(access.array not in inner for access in stored) or sums.names else None


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
