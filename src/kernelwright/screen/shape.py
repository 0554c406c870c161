"""Rules about the region's form: plainly spelled, one balanced piece, directives from the lists, no way out of it."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter

from kernelwright.screen.context import Change, Finding
from kernelwright.screen.names import HEADERS_ALLOWED, PRAGMAS_ALLOWED
from kernelwright.screen.scope import text
from kernelwright.screen.text import Code, Directive, odd_spellings
from kernelwright.source import walk

MAX_DEPTH = 200
"""Levels of the syntax tree; a sum of n terms has n."""
_CONDITIONS = {"if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"}


def spelled_plainly(change: Change) -> Iterator[Finding]:
    """Nothing that this reader and a compiler could read differently."""
    known = {what for _, what, _ in odd_spellings(change.old)}
    for at, what, advice in odd_spellings(change.new):
        if what not in known:
            yield Finding(at, f"it holds {what}", advice)
    last = max([start for start, _ in change.new.gaps] or [-1])
    ends_open = last >= 0 and not change.new.text[last:].startswith("/*") and "\n" not in change.new.text[last:]
    if ends_open and not change.ends_line:
        yield Finding(
            last, "its last line is a comment or directive and code follows on that line", "end it with a newline"
        )


def balanced(change: Change) -> Iterator[Finding]:
    """Brackets cannot close the region's scope and open another."""
    old, new = change.old.unmatched, change.new.unmatched
    if [token.text for token in old] != [token.text for token in new]:
        at = new[0] if new else None
        yield Finding(at.at if at else 0,
                      f"its brackets do not balance as the original's do ({at.text!r} has no partner)" if at
                      else "it closes brackets that the original leaves open",
                      "close every bracket that it opens, and no other")  # fmt: skip


def nests_moderately(change: Change) -> Iterator[Finding]:
    """No deep nesting, on which this reader (and a compiler) spends hours: what it costs grows faster than the depth."""
    most = max(MAX_DEPTH, 2 * max(depth for depth, _ in _tree_depths(change.old)))
    deep = next((at for depth, at in _tree_depths(change.new) if depth > most), None)
    if deep is not None:
        yield Finding(deep, f"it nests deeper than {most} levels", "split long expressions, and write loops")


def _tree_depths(code: Code) -> Iterator[tuple[int, int]]:
    """The depth of each node and its offset, in source order."""
    cursor, depth = code.tree.walk(), 0
    while cursor.node is not None:
        yield depth, code.offset(cursor.node)
        if cursor.goto_first_child():
            depth += 1
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            depth -= 1


def directives_from_the_lists(change: Change) -> Iterator[Finding]:
    """Pragmas and toolkit includes from a list; any other directive only as the original region has it."""
    original = {directive.text for directive in change.old.directives}
    for directive in change.new.directives:
        if directive.text in original:
            continue
        if directive.name == "include":
            header = directive.text.removeprefix("#include").strip()
            if not HEADERS_ALLOWED.fullmatch(header):
                yield Finding(directive.at, f"#include {header} is not on the list of toolkit headers",
                              "use <cmath>, <immintrin.h>, <cuda_fp16.h>, <cooperative_groups.h> and their like")  # fmt: skip
        elif directive.name == "pragma":
            yield from _pragma(directive.text.removeprefix("#pragma").strip(), directive.at)
        else:
            yield Finding(directive.at, f"the directive {directive.text[:40]!r} is not in the original region",
                          "use constexpr, templates and if constexpr in its place")  # fmt: skip
    for index, token in enumerate(change.new.tokens):
        if token.text in ("_Pragma", "__pragma") and token.kind == "name":
            inside = change.new.tokens[index + 2 : index + 3]
            quoted = inside[0].text if inside and inside[0].kind == "string" else '""'
            yield from _pragma(quoted.strip('"').replace('\\"', '"'), token.at)


def _pragma(words: str, at: int) -> Iterator[Finding]:
    if not PRAGMAS_ALLOWED.fullmatch(" ".join(words.split())):
        yield Finding(at, f"the pragma {words[:70]!r} is not on the list",
                      "use unroll, omp (no threadprivate, declare target or variant), GCC ivdep or unroll")  # fmt: skip


def conditions_whole(change: Change) -> Iterator[Finding]:
    """`#if` … `#endif` kept from the original are whole, and no branch hides a bracket."""
    said = _broken_condition(change.new)
    if said is not None and not (_broken_condition(change.old) and _conditions(change.new) == _conditions(change.old)):
        directive, what = said
        yield Finding(directive.at, f"{directive.text!r} {what}", "keep #if, #else and #endif as they are")


def _broken_condition(code: Code) -> tuple[Directive, str] | None:
    open_at: list[tuple[Directive, int]] = []
    for directive, depth in _depths(code):
        if directive.name.startswith("if"):
            open_at.append((directive, depth))
        elif directive.name in _CONDITIONS and not open_at:
            return directive, "has no #if in the region"
        elif directive.name in _CONDITIONS and depth != open_at[-1][1]:
            return directive, "ends a branch that leaves a bracket open"
        elif directive.name == "endif":
            open_at.pop()
    return (open_at[-1][0], "has no #endif in the region") if open_at else None


def _depths(code: Code) -> Iterator[tuple[Directive, int]]:
    """Each directive with the depth of brackets in front of it."""
    depth, tokens = 0, iter(code.tokens)
    token = next(tokens, None)
    for directive in code.directives:
        while token is not None and token.at < directive.at:
            depth += token.kind == "mark" and (token.text in "([{") - (token.text in ")]}")
            token = next(tokens, None)
        yield directive, depth


def _conditions(code: Code) -> list[str]:
    return [directive.text for directive in code.directives if directive.name in _CONDITIONS]


def readable(change: Change) -> Iterator[Finding]:
    """The parser can read it at least as well as the original."""
    errors = _errors(change.new)
    if len(errors) > len(_errors(change.old)):
        node = errors[0]
        piece = text(node).strip().split("\n")[0][:40] or "something missing"
        yield Finding(change.new.offset(node), f"its syntax could not be read at {piece!r}",
                      "correct the syntax, or write this part in simpler C++")  # fmt: skip


def _errors(code: Code) -> list[tree_sitter.Node]:
    if not code.tree.root_node.has_error:
        return []
    return [node for node in walk(code.tree.root_node) if node.type == "ERROR" or node.is_missing]


def jumps_stay_inside(change: Change) -> Iterator[Finding]:
    """A part of a function runs to its end: it does not return, break or jump out where the original does not."""
    throws = list(change.nodes("throw_statement"))
    if throws and not change.original_has("throw"):
        yield Finding(
            change.new.offset(throws[0]), "it throws, which the original does not", "compute without exceptions"
        )
    labels = {text(node.child_by_field_name("label")) for node in change.nodes("labeled_statement")}
    for node in change.nodes("goto_statement"):
        if text(node.child_by_field_name("label")) not in labels and not change.original_has("goto"):
            yield Finding(change.new.offset(node), f"{text(node)!r} leaves the region", "use structured loops")
    if change.level != "block" or change.whole_body:
        return
    original = {kind for kind, _ in _exits(change.old.root)}
    for kind, node in _exits(change.new.root):
        if kind not in original:
            yield Finding(change.new.offset(node), f"its {kind} leaves the region, and the code behind it would not run",
                          "let the region run to its end")  # fmt: skip


def _exits(root: tree_sitter.Node) -> Iterator[tuple[str, tree_sitter.Node]]:
    """return, break and continue that leave `root`: not those of a lambda, a class or a loop inside it."""
    stack: list[tuple[tree_sitter.Node, bool, bool]] = [(root, False, False)]
    while stack:
        node, in_loop, in_switch = stack.pop()
        if node.type in ("lambda_expression", "function_definition"):
            continue
        kind = node.type.removesuffix("_statement")
        left = (
            kind == "return" or (kind == "break" and not (in_loop or in_switch)) or (kind == "continue" and not in_loop)
        )
        if left and node.is_named:
            yield kind, node
        loop = in_loop or node.type in ("for_statement", "for_range_loop", "while_statement", "do_statement")
        switch = in_switch or node.type == "switch_statement"
        stack.extend((child, loop, switch) for child in reversed(node.children))
