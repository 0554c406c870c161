"""A text with the macros of its surroundings opened, for rules that ask what an expression does.

`FLOAT4(y[i]) = v` is a store and `CP_ASYNC(to, from)` a copy, whatever their names are. A macro that cannot be opened with
certainty (defined twice, undefined somewhere, recursive, nested deeply) stays a call of something unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernelwright.preprocessor import Expander, Macro, NotExpandable, definitions, lex, tokens_of
from kernelwright.screen.text import Code

MAX_NESTED = 6
"""Macro calls inside each other's arguments: what they expand to grows exponentially with it."""


def known_macros(codes: Iterable[Code]) -> dict[str, Macro]:
    """The macros that files define once and for all."""
    lines = {str(at): "\n".join(directive.text for directive in code.directives) for at, code in enumerate(codes)}
    return definitions(lines)[0]


def opened(code: Code, macros: Mapping[str, Macro]) -> Code:
    """`code` with macro calls expanded, each in the line in which it starts; itself where there are none, or where the parser
    could read less of what they make."""
    if not macros.keys() & code.names.keys():
        return code
    made = Code(_expanded(code.text, macros), code.language, code.wrap, frozenset(code.qualifiers))
    return code if made.tree.root_node.has_error and not code.tree.root_node.has_error else made


def _expanded(text: str, macros: Mapping[str, Macro]) -> str:
    pieces, out, at = lex(text), list[str](), 0
    while at < len(pieces):
        end = _call_end(pieces, at, macros) if pieces[at][0] == "name" and pieces[at][1] in macros else at
        words = _words(pieces[at:end], macros) if end > at else None
        if words is None:
            out.append(pieces[at][1])
            at += 1
        else:
            out += [" ", words, " ", "\n" * sum(piece.count("\n") for _, piece in pieces[at:end])]
            at = end
    return "".join(out)


def _call_end(pieces: list[tuple[str, str]], at: int, macros: Mapping[str, Macro]) -> int:
    """Behind a macro's name, or behind the brackets that follow the name of one with arguments; `at` where none do."""
    if macros[pieces[at][1]].parameters is None:
        return at + 1
    depth = 0
    for index in range(at + 1, len(pieces)):
        kind, piece = pieces[index]
        depth += (piece == "(") - (piece == ")")
        if kind == "directive" or (depth == 0 and kind not in ("space", "comment") and piece != ")"):
            return at
        if depth == 0 and piece == ")":
            return index + 1
    return at


def _words(call: list[tuple[str, str]], macros: Mapping[str, Macro]) -> str | None:
    """What a call stands for, spaces between its tokens; None where it is not opened."""
    if _nested(call, macros) > MAX_NESTED:
        return None
    try:
        return " ".join(token.text for token in Expander(macros).run(tokens_of(call)))
    except NotExpandable:
        return None


def _nested(call: list[tuple[str, str]], macros: Mapping[str, Macro]) -> int:
    depth, most, stack, previous = 0, 0, list[bool](), ""
    for kind, piece in call:
        if piece == "(":
            stack.append(previous in macros)
            depth += stack[-1]
            most = max(most, depth)
        elif piece == ")" and stack:
            depth -= stack.pop()
        previous = previous if kind in ("space", "comment") else piece
    return most
