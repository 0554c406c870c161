"""A region's text as a compiler's first three phases leave it: lines joined, comments gone, directives apart, tokens.

Rules about names look at these tokens and not at the syntax tree, because a parser that recovers from what it cannot
read can be made to miss a name, and a token cannot. What would make this reading differ from a compiler's (trigraphs,
digraphs, raw strings, universal character names, unended comments) is found in `odd_spellings` and never decoded.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import tree_sitter

from kernelwright.source import parse

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    | (?P<raw>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?(?:\)(?P=fence)"|\Z))
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*+")
    | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])++')
    | (?P<open>["'](?:\\.|[^"'\\\n])*+)
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'?[\w.])*)
    | (?P<name>[A-Za-z_$][\w$]*)
    | (?P<mark>::|->|\.\.\.|\#\#|<<<|>>>|[-+*/%&|^]=|[=!<>]=|\+\+|--|&&|\|\||.)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_ODD_MARKS = {"\\": "a backslash", '"': "a string that does not end", "'": "a character that does not end"}
_TRIGRAPH = re.compile(r"\?\?[=/'()!<>-]")
_DIGRAPH = re.compile(r"<%|%>|%:|:>|<:(?!:[^:>])")
_OPENING = {"(": ")", "[": "]", "{": "}"}
_QUALIFIERS = ("__launch_bounds__", "__attribute__", "__align__", "__maxnreg__", "__cluster_dims__", "__declspec")
_PLAIN_QUALIFIERS = {
    "__device__", "__host__", "__forceinline__", "__noinline__", "__restrict__", "__restrict", "__inline__",
    "__always_inline", "__grid_constant__", "__shared__", "__extension__",
}  # fmt: skip


@dataclass(frozen=True)
class Token:
    kind: str
    """name, number, string, raw, char or mark."""
    text: str
    at: int
    """Offset into the joined text."""


@dataclass(frozen=True)
class Directive:
    """One preprocessor line, comments removed and spaces folded, as in `#pragma unroll 4`."""

    text: str
    at: int

    @property
    def name(self) -> str:
        found = re.match(r"# ?(\w*)", self.text)
        return found[1] if found else ""


def join_lines(text: str) -> str:
    """`text` with continued lines joined; the newlines taken away follow the joined line, so that lines keep numbers."""
    joined, owed = [], 0
    for line in text.split("\n"):
        if line.endswith("\\"):
            joined.append(line[:-1])
            owed += 1
        else:
            joined.append(line + "\n" * (1 + owed))
            owed = 0
    return "".join(joined)[:-1]


class Code:
    """One text, read once: `tokens`, `directives`, counts of names, and the syntax tree of what is left."""

    def __init__(
        self, text: str, language: str, wrap: tuple[str, str] = ("", ""), qualifiers: frozenset[str] = frozenset()
    ) -> None:
        self.text = join_lines(text)
        self.language = language
        self.wrap = wrap
        self.qualifiers = _PLAIN_QUALIFIERS | qualifiers
        self.tokens: list[Token] = []
        self.directives: list[Directive] = []
        self.gaps: list[tuple[int, int]] = []
        """Comments and directives: what the parser does not get to see."""
        self.unended: list[int] = []
        """Where a comment starts that does not end."""
        self._read()

    def _read(self) -> None:
        at, fresh_line = 0, True
        while at < len(self.text):
            if fresh_line and self.text[at] == "#":
                end = self._read_directive(at)
                self.gaps.append((at, end))
                at = end
                continue
            found = _TOKEN.match(self.text, at)
            assert found is not None
            assert found.lastgroup is not None
            kind = "raw" if found["raw"] is not None else found.lastgroup
            if kind == "comment":
                self.gaps.append(found.span())
                self._note_unended(found[0], at)
            elif kind == "open":  # no compiler takes it; its names are read all the same
                self.tokens.append(Token("mark", found[0][0], at))
                self.tokens += [Token("name", name[0], at + name.start()) for name in _NAME.finditer(found[0])]
            elif kind != "space":
                self.tokens.append(Token(kind, found[0], at))
            fresh_line = (fresh_line and kind in ("space", "comment")) or (kind == "space" and "\n" in found[0])
            at = found.end()

    def _note_unended(self, comment: str, at: int) -> None:
        if comment.startswith("/*") and (len(comment) < 4 or not comment.endswith("*/")):
            self.unended.append(at)

    def _read_directive(self, start: int) -> int:
        at, pieces = start, []
        while at < len(self.text) and self.text[at] != "\n":
            found = _TOKEN.match(self.text, at)
            assert found is not None
            if found["space"] is not None and "\n" in found[0]:
                pieces.append(" ")
                at += found[0].index("\n")
                continue
            pieces.append(" " if found["comment"] or found["space"] else found[0])
            if found["comment"]:
                self._note_unended(found[0], at)
            at = found.end()
        self.directives.append(Directive(re.sub(r"^# ", "#", " ".join("".join(pieces).split())), start))
        return at

    def line(self, at: int) -> int:
        """The 1-based line of an offset into the joined text."""
        return self.text.count("\n", 0, at) + 1

    def line_start(self, line: int) -> int:
        """The offset into the joined text at which a 1-based line starts."""
        return sum(len(text) + 1 for text in self.text.split("\n")[: line - 1])

    @cached_property
    def names(self) -> Counter[str]:
        """How often each name stands in it, keywords included, directives left out."""
        return Counter(token.text for token in self.tokens if token.kind == "name")

    @cached_property
    def shared_statics(self) -> frozenset[Token]:
        """Every `static` of a `__shared__` variable, which says nothing more: nvcc refuses both in code for the host."""
        found = set()
        for index, token in enumerate(self.tokens if self.language != "cpp" else ()):
            behind = takewhile(lambda one: one.kind == "name", self.tokens[index + 1 : index + 9])
            words = (
                {one.text for one in (*self.tokens[index - 1 : index], *behind)} if token.text == "static" else set()
            )
            found |= {token} if "__shared__" in words else set()
        return frozenset(found)

    @cached_property
    def unmatched(self) -> list[Token]:
        """Brackets without a partner, in order: what the text closes or opens of its surroundings."""
        stack: list[Token] = []
        for token in self.tokens:
            if token.kind != "mark" or token.text not in "()[]{}":
                continue
            if stack and _OPENING.get(stack[-1].text) == token.text:
                stack.pop()
            else:
                stack.append(token)
        return stack

    @cached_property
    def _closing(self) -> dict[int, int]:
        """For each opening bracket the index of its closing one, by token index."""
        closing, stack = {}, []
        for index, token in enumerate(self.tokens):
            if token.kind == "mark" and token.text in _OPENING:
                stack.append(index)
            elif token.kind == "mark" and token.text in ")]}" and stack:
                closing[stack.pop()] = index
        return closing

    def group(self, opening: int) -> int:
        """The index of the token that closes the bracket at token index `opening` (the last one where none does)."""
        return self._closing.get(opening, len(self.tokens) - 1)

    @cached_property
    def parsed_text(self) -> str:
        """What the parser gets: gaps and qualifiers blanked, everything else at its offset, non-ASCII as `?`."""
        text = [char if char.isascii() else "?" for char in self.text]
        done = 0
        for start, end in sorted([*self.gaps, *self._qualifiers()]):
            at = max(start, done)
            text[at:end] = [char if char == "\n" else " " for char in text[at:end]]
            done = max(done, end)
        return "".join(text)

    def _qualifiers(self) -> Iterator[tuple[int, int]]:
        """What a function's head may carry, attributes, and the base of `enum : int {`, which the grammar lacks."""
        braces = [token.at for token in self.tokens if token.text == "{"]
        for index, (token, after) in enumerate(zip(self.tokens, self.tokens[1:], strict=False)):
            if token.text in self.qualifiers or token in self.shared_statics:
                yield token.at, token.at + len(token.text)
            elif token.text in _QUALIFIERS and after.text == "(":
                yield token.at, self.tokens[self.group(index + 1)].at + 1
            elif token.text == after.text == "[":
                yield token.at, self.tokens[self.group(index)].at + 1
            elif token.text == "enum" and after.text == ":":
                body = bisect_right(braces, token.at)
                yield after.at, braces[body] if body < len(braces) else after.at

    @cached_property
    def tree(self) -> tree_sitter.Tree:
        """The syntax tree of the text inside `wrap`, which gives it its place: inside a function, or in a class.

        The C++ grammar is the newer one: what holds no launches and stumbles in the CUDA one is read by it.
        """
        data = (self.wrap[0] + self.parsed_text + self.wrap[1]).encode()
        tree = parse(data, self.language)
        if tree.root_node.has_error and self.language != "cpp" and b"<<<" not in data:
            plain = parse(data, "cpp")
            return tree if plain.root_node.has_error else plain
        return tree

    @property
    def root(self) -> tree_sitter.Node:
        """The node whose children are the region's own outermost statements or declarations."""
        root = self.tree.root_node
        if not self.wrap[0] or not root.named_children:
            return root
        return root.named_children[0].child_by_field_name("body") or root

    def offset(self, node: tree_sitter.Node) -> int:
        return max(0, node.start_byte - len(self.wrap[0]))


def odd_spellings(code: Code) -> Iterator[tuple[int, str, str]]:
    """Spellings that different compilers, or this reader and a compiler, may read differently: offset, what, advice."""
    for found in re.finditer(r"\\[ \t\r\f\v]+(?=\n)|\\\Z", code.text):
        yield found.start(), "a backslash at the end of a line with spaces after it", "take it away"
    for found in re.finditer(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)", code.text):
        yield found.start(), f"the control character {found[0]!r}", "use spaces and newlines"
    for found in _TRIGRAPH.finditer(code.text):
        yield found.start(), f"the trigraph {found[0]}", "write the character itself"
    for token in code.tokens:
        if token.kind == "raw" and not re.search(r"\)[^()\\\s]{0,16}\"\Z", token.text):
            yield token.at, "a raw string that does not end", "write a plain string"
        elif token.kind == "raw":
            yield token.at, f"the raw string {token.text[:12]}…", "write a plain string"
        elif token.kind == "mark" and not token.text.isascii():
            yield token.at, f"the character {token.text!r} outside comments and strings", "use ASCII letters in names"
        elif token.kind == "mark" and token.text in _ODD_MARKS:
            yield token.at, f"{_ODD_MARKS[token.text]} outside comments and strings", "spell names with plain letters"
        elif token.kind == "mark" and token.text == "#":
            yield token.at, "a # in the middle of a line", "take it away"
    yield from _unended(code)
    yield from _digraphs(code)


def _unended(code: Code) -> Iterator[tuple[int, str, str]]:
    for at in code.unended:
        yield at, "a comment that does not end", "close it with */"
    for directive in code.directives:
        if re.search(r"\\|R\"", directive.text):
            yield directive.at, "a directive with a backslash or a raw string", "write it plainly"


def _digraphs(code: Code) -> Iterator[tuple[int, str, str]]:
    plain = code.parsed_text
    for token in code.tokens:
        found = _DIGRAPH.match(plain, token.at) if token.kind == "mark" else None
        if found:
            yield token.at, f"the digraph {found[0]}", "write the character itself"
