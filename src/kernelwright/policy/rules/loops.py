"""Counting loops: how they are read, and rules that change one loop alone: unrolling, hoisting, accumulation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from kernelwright.policy.rules.arithmetic import scopes
from kernelwright.policy.rules.effects import Effects, effects
from kernelwright.policy.rules.names import Names
from kernelwright.policy.rules.rule import CPP, EVERY, GPU, Rule, Variant, only
from kernelwright.policy.rules.syntax import (
    LOOPS,
    Edit,
    Site,
    ancestors,
    below,
    child,
    enclosing,
    flat,
    fresh,
    identifiers,
    insert_before,
    may_precede,
    operator,
    pure,
    strip,
    text_of,
)


@dataclass(frozen=True)
class Count:
    """`for (T v = start; v < bound; v += step)`: counts up, and its header changes nothing but `v`."""

    loop: Node
    variable: str
    start: Node
    bound: Node
    by_one: bool
    declared: bool
    """Whether the loop declares its variable itself."""
    header: str
    """The text between the parentheses."""

    @property
    def body(self) -> Node:
        body = child(self.loop, "body")
        assert body is not None
        return body

    @property
    def statements(self) -> list[Node]:
        body = self.body
        nodes = body.named_children if body.type == "compound_statement" else [body]
        return [node for node in nodes if node.type != "comment"]

    def trips(self, names: Names) -> int | None:
        start, bound = names.constant(self.start), names.constant(self.bound)
        if start is None or bound is None or not self.by_one:
            return None
        condition = child(self.loop, "condition")
        return bound - start + (condition is not None and operator(condition) == "<=")


def counted(loop: Node) -> Count | None:
    """A for statement as a count, or None where it is not one or its body changes the variable or the bound."""
    first, condition, update, body = (child(loop, part) for part in ("initializer", "condition", "update", "body"))
    if first is None or condition is None or update is None or body is None:
        return None
    found = _initial(first)
    if found is None or condition.type != "binary_expression" or operator(condition) not in ("<", "<="):
        return None
    variable, start = found
    left, bound = child(condition, "left"), child(condition, "right")
    step = _step(update, variable)
    if left is None or bound is None or step is None or text_of(left) != variable or not pure(bound):
        return None
    fixed = (identifiers(bound) | identifiers(update)) - {variable}
    if effects(body).touched & (fixed | {variable}) or variable in identifiers(bound):
        return None
    header = loop.text[first.start_byte - loop.start_byte : update.end_byte - loop.start_byte] if loop.text else b""
    declared = first.type == "declaration"
    return Count(loop, variable, start, bound, step == "1", declared, header.decode(errors="surrogateescape"))


def _initial(first: Node) -> tuple[str, Node] | None:
    if first.type == "declaration":
        declarators = first.children_by_field_name("declarator")
        first = declarators[0] if len(declarators) == 1 else first
    name = child(first, "declarator") or child(first, "left")
    value = child(first, "value") or child(first, "right")
    if name is None or value is None or name.type != "identifier" or value.type == "argument_list":
        return None
    return text_of(name), value


def _step(update: Node, variable: str) -> str | None:
    """What a loop adds to its variable each time, as text; None where its header does something else."""
    text, step = flat(update), child(update, "right")
    if text in (f"{variable}++", f"++{variable}"):
        return "1"
    plain = update.type == "assignment_expression" and text.startswith(f"{variable}+=")
    return flat(step) if plain and step is not None and pure(step) else None


def innermost(loop: Node) -> bool:
    body = child(loop, "body")
    return body is not None and next(below(body, *LOOPS), None) is None


def innermost_counts(site: Site) -> Iterator[tuple[Count, Names]]:
    for loop, names in scopes(site, "for_statement"):
        count = counted(loop) if innermost(loop) else None
        if count is not None:
            yield count, names


def _unroll_gpu_variants(site: Site) -> list[Variant]:
    fixed, other = list[Node](), list[Node]()
    for count, names in innermost_counts(site):
        if may_precede(site, count.loop):
            trips = count.trips(names)
            kind = fixed if trips is not None and 1 < trips <= 64 else other if trips is None else []
            kind.append(count.loop)
    variants = [Variant(f"#pragma unroll {n}".strip(), tuple(
        [insert_before(site, loop, "#pragma unroll") for loop in fixed]
        + [insert_before(site, loop, f"#pragma unroll {n}") for loop in other])) for n in (4, 8, 2) if other]  # fmt: skip
    return variants or only(insert_before(site, loop, "#pragma unroll") for loop in fixed)


UNROLL_GPU = Rule(
    "unroll", GPU,
    "an innermost counting loop with no pragma of its own; fully where its trip count is fixed (2 to 64)",
    "several iterations' loads are in flight at once, and the loop's own counting and branching is shared among them",
    _unroll_gpu_variants, gain=1.04,
)  # fmt: skip


def _unroll_cpp_variants(site: Site) -> list[Variant]:
    loops = [count.loop for count, _ in innermost_counts(site) if may_precede(site, count.loop)]
    return [Variant(f"#pragma GCC unroll {n}", tuple(insert_before(site, loop, f"#pragma GCC unroll {n}") for loop in loops))
            for n in (4, 8) if loops]  # fmt: skip


UNROLL_CPP = Rule(
    "unroll", (CPP,),
    "an innermost counting loop with no pragma of its own",
    "several iterations overlap in the pipeline, and the loop's own counting and branching is shared among them",
    _unroll_cpp_variants, gain=1.02,
)  # fmt: skip


def settled(count: Count, names: Names) -> Effects | None:
    """What a loop's body changes, or None where it calls, jumps away or changes what cannot be named."""
    changed = effects(count.body)
    second = any(names.memory(name) != name for name in changed.modified if _is_reference(name, names))
    return None if changed.opaque or second or changed.jumps & {"return", "goto", "break"} else changed


def _is_reference(name: str, names: Names) -> bool:
    declared = names.local(name)
    return declared is not None and declared.reference


def _hoist_variants(site: Site) -> list[Variant]:
    edits, taken = list[Edit](), set[str]()
    for count, names in innermost_counts(site):
        changed = settled(count, names)
        if changed is None or not may_precede(site, count.loop) or _has_goto(count.loop):
            continue
        named: dict[str, str] = {}
        stored = {names.memory(name) for name in changed.stored}
        for part in _invariant(count, names, changed.touched | {count.variable}):
            if {names.memory(name) for name in identifiers(part)} & stored:
                continue
            if flat(part) not in named:
                name = named.setdefault(flat(part), fresh(site, "invariant", taken))
                typed = names.typed(part)
                line = f"const {typed[0] if typed else 'auto'} {name} = {text_of(part)};"
                edits.append(insert_before(site, count.loop, line))
            edits.append(Edit(part.start_byte, part.end_byte, named[flat(part)]))
    return only(edits)


def _has_goto(loop: Node) -> bool:
    function = enclosing(loop, "function_definition")
    return function is not None and next(below(function, "goto_statement", "labeled_statement"), None) is not None


def _invariant(count: Count, names: Names, changed: set[str]) -> list[Node]:
    """The largest numeric expressions of the body, run in every iteration, that the loop does not change."""
    found, stack = [], list(reversed(count.statements))
    while stack:
        node = stack.pop()
        if node.type in ("if_statement", "conditional_expression", "switch_statement", "while_statement") or (
            node.type == "binary_expression" and operator(node) in ("&&", "||")
        ):
            continue
        if _worth_hoisting(node) and not identifiers(node) & changed and _private(node, names):
            found.append(node)
        else:
            stack.extend(reversed(node.named_children))
    return found


def _worth_hoisting(node: Node) -> bool:
    """A load, a quotient or a call of <cmath>, or arithmetic on one; plain sums the compiler moves by itself."""
    costly = any(part.type != "binary_expression" or operator(part) == "/" for part in below(
        node, "subscript_expression", "call_expression", "binary_expression"))  # fmt: skip
    return costly and pure(node) and bool(identifiers(node)) and not _is_target(node)


def _is_target(node: Node) -> bool:
    above = node.parent
    return (
        above is not None
        and above.type in ("assignment_expression", "update_expression", "pointer_expression")
        and (child(above, "left") == node or above.type != "assignment_expression")
    )


def _private(node: Node, names: Names) -> bool:
    declared = [names.find(name) for name in identifiers(node) if not name.isupper()]
    known = all(d is not None and not d.qualifiers & {"volatile", "__shared__"} for d in declared)
    kind = names.kind(node)
    return known and (kind in ("float", "double") or (kind == "int" and node.type == "subscript_expression"))


HOIST = Rule(
    "hoist-invariant", EVERY,
    "in an innermost counting loop without unknown calls or jumps: a load of a number, a quotient or a "
    "<cmath> call that runs in every iteration and none of whose names the loop assigns or stores through",
    "the compiler must repeat a load when any store of the loop might change it, and a call that might set errno",
    _hoist_variants, gain=1.03, risk=2,
    assumes="the loop's stores do not reach that memory by another name; the element exists even if the loop runs no time",
)  # fmt: skip


def _accumulate_variants(site: Site) -> list[Variant]:
    edits, taken = list[Edit](), set[str]()
    for count, names in innermost_counts(site):
        changed = settled(count, names)
        target = _accumulated(count, names, changed) if changed is not None else None
        if target is None or not may_precede(site, count.loop) or _has_goto(count.loop):
            continue
        name, text = fresh(site, "total", taken), text_of(target)
        typed = names.typed(target)
        edits.append(insert_before(site, count.loop, f"{typed[0] if typed else 'auto'} {name} = {text};"))
        edits += [Edit(node.start_byte, node.end_byte, name)
                  for node in below(count.body, "subscript_expression") if flat(node) == flat(target)]  # fmt: skip
        edits.append(_after(site, count.loop, f"{text} = {name};"))
    return only(edits)


def _after(site: Site, statement: Node, line: str) -> Edit:
    line_start = site.data.rfind(b"\n", 0, statement.start_byte) + 1
    lead = site.data[line_start : statement.start_byte].decode(errors="surrogateescape")
    return Edit(statement.end_byte, statement.end_byte, f"\n{lead if not lead.strip() else ''}{line}")


def _accumulated(count: Count, names: Names, changed: Effects) -> Node | None:
    """The one element `a[e]`, fixed during the loop, that the body's only stores to memory add to."""
    targets = [left for node in below(count.body, "assignment_expression")
               if (left := child(node, "left")) is not None and strip(left).type != "identifier"]  # fmt: skip
    if not targets or len(changed.stored) != 1 or len({flat(target) for target in targets}) != 1:
        return None
    target = targets[0]
    array = next(iter(changed.stored))
    sums = all(operator(above) in ("+=", "-=", "*=") for node in targets if (above := node.parent) is not None)
    indices = identifiers(target) - {array}
    if not sums or indices & (changed.touched | {count.variable}) or target.type != "subscript_expression":
        return None
    memory = names.memory(array)
    uses = [node for node in below(count.body, "identifier") if names.memory(text_of(node)) == memory]
    inside = all(any(flat(above) == flat(target) for above in ancestors(use)) for use in uses)
    declared = names.find(array)
    private = declared is not None and not declared.qualifiers & {"volatile"}
    return target if inside and private and pure(target) and names.kind(target) in ("float", "double", "int") else None


ACCUMULATE = Rule(
    "accumulate-in-register", EVERY,
    "an innermost counting loop without unknown calls or jumps whose only store to memory is `a[e] += …` (or -=, *=) with e "
    "fixed during the loop, and which uses `a` in no other way",
    "the sum stays in a register instead of going through memory in every iteration",
    _accumulate_variants, gain=1.06, risk=2,
    assumes="what the loop reads by other names is not a[e]; the element exists even if the loop runs no time",
)  # fmt: skip

RULES = (ACCUMULATE, HOIST, UNROLL_GPU, UNROLL_CPP)
