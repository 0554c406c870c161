"""The C preprocessor's own rules, for macros that are known: tokens, definitions, and expansion without a file system.

Prosser's algorithm with hide sets ("blue paint"), `#`, `##`, `__VA_ARGS__`, GNU's `, ## __VA_ARGS__` and `__VA_OPT__`.
Which macros are expanded where is `kernelwright.macros`' decision, and the compiler's preprocessor has the last word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

_LEXER = re.compile(
    r"""
    (?P<directive>(?<!\\\n)^[ \t]*\#(?:\\\n|/\*.*?(?:\*/|\Z)|[^\n])*)
  | (?P<space>(?:[ \t\f\v\r]|\\\n)+|\n)
  | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<string>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?(?:\)(?P=fence)"|\Z)
        |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'\w|[\w.])*)
  | (?P<name>[^\W0-9]\w*)
  | (?P<mark>%:%:|\.\.\.|<=>|<<=|>>=|->\*|\#\#|<<|>>|->|\+\+|--|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|\.\*)
  | (?P<other>.)
    """,
    re.X | re.S | re.M,
)
_LEFT_ALONE = {"__LINE__", "__COUNTER__", "__FILE__"}


@dataclass(frozen=True)
class Token:
    """A preprocessing token; `space` is what stood before it: nothing, a blank, or a line end."""

    kind: str
    text: str
    space: str = ""
    hidden: frozenset[str] = frozenset()
    """Macros from whose expansion the token came; it is never expanded by one of them again ("blue paint")."""


@dataclass(frozen=True)
class Macro:
    name: str
    parameters: tuple[str, ...] | None
    """None for an object-like macro; a variadic one ends with the name of its variable part."""
    variadic: bool
    body: tuple[Token, ...]


class NotExpandable(Exception):
    """The call at hand stays as it is; the message says why."""


def lex(text: str, start: int = 0, end: int | None = None) -> list[tuple[str, str]]:
    """(kind, text) of all pieces of text[start:end]; joined again they are that text."""
    stop, pieces, at = len(text) if end is None else end, [], start
    while at < stop:
        found = _LEXER.match(text, at, stop)
        assert found is not None, "the last alternative takes any character"
        pieces.append((str(found.lastgroup), found.group()))
        at = found.end()
    return pieces


def tokens_of(pieces: Iterable[tuple[str, str]]) -> list[Token]:
    """Tokens with the white space before them; comments count as a blank."""
    tokens, space = [], ""
    for kind, text in pieces:
        if kind in ("space", "comment"):
            space = "\n" if space == "\n" or (kind == "space" and "\n" in text) else " "
        else:
            tokens.append(Token(kind, text, space))
            space = ""
    return tokens


def definitions(headers: Mapping[str, str]) -> tuple[dict[str, Macro], dict[str, str]]:
    """The macros that `headers` (path → text) define once and for all; and those that do not, each with the reason."""
    macros: dict[str, Macro] = {}
    left: dict[str, str] = {}
    for path, text in headers.items():
        for kind, piece in lex(text.replace("\r\n", "\n")):
            if kind != "directive":
                continue
            if undone := re.match(r"\s*#\s*undef\s+(\w+)", piece):
                left[undone[1]] = f"{path} also undefines it"
            macro = _definition(piece)
            if macro is None:
                continue
            if macro.name in macros and _shape(macros[macro.name]) != _shape(macro):
                left[macro.name] = f"it has several definitions, one of them in {path}"
            if reason := _unsafe(macro):
                left[macro.name] = reason
            macros[macro.name] = macro
    return {name: macro for name, macro in macros.items() if name not in left}, left


def _shape(macro: Macro) -> tuple[object, ...]:
    return macro.parameters, [token.text for token in macro.body]


def _definition(directive: str) -> Macro | None:
    found = re.match(r"\s*#\s*define\s+(\w+)(\([^)]*\))?(.*)", directive, re.S)
    if found is None:
        return None
    name, head, _ = found.groups()
    tokens = tuple(tokens_of(lex(directive, found.start(3))))
    if head is None:
        return Macro(name, None, False, tokens)
    words = [word.strip() for word in head[1:-1].replace("\\\n", " ").split(",")] if head[1:-1].strip() else []
    variadic = bool(words) and words[-1].endswith("...")
    if variadic:
        words[-1] = words[-1].removesuffix("...").strip() or "__VA_ARGS__"
    return Macro(name, tuple(words), variadic, tokens)


def _unsafe(macro: Macro) -> str | None:
    texts = [token.text for token in macro.body]
    if moving := _LEFT_ALONE.intersection(texts):
        return f"it uses {min(moving)}, whose value depends on the place"
    for at, text in enumerate(texts):
        if text == "__VA_OPT__" and (texts[at - 1 : at] in (["#"], ["##"])):
            return "it pastes __VA_OPT__"
    return None


@dataclass
class Expander:
    """Expands tokens by `macros`; `met` collects the names of those that were expanded."""

    macros: Mapping[str, Macro]
    met: set[str] = field(default_factory=set)

    def run(self, tokens: list[Token]) -> list[Token]:
        """Prosser's algorithm: expand until nothing is left that may be expanded."""
        out: list[Token] = []
        rest = list(reversed(tokens))
        while rest:
            token = rest.pop()
            macro = self.macros.get(token.text) if token.kind == "name" else None
            if macro is None:
                out.append(token)
                continue
            if macro.name in token.hidden:
                raise NotExpandable("it is recursive")
            self.met.add(macro.name)
            if macro.parameters is None:
                hidden = token.hidden | {macro.name}
                new = self._body(macro, [], hidden)
            elif rest and rest[-1].text == "(":
                arguments, commas, closing = _arguments(rest)
                hidden = (token.hidden & closing.hidden) | {macro.name}
                new = self._body(macro, _bound(macro, arguments, commas), hidden)
            else:
                out.append(token)
                continue
            if new:
                new[0] = replace(new[0], space=token.space)
            elif token.space and rest and not rest[-1].space:
                rest[-1] = replace(rest[-1], space=token.space)
            rest.extend(reversed(new))
        return out

    def _body(self, macro: Macro, arguments: list[list[Token]], hidden: frozenset[str]) -> list[Token]:
        bound = dict(zip(macro.parameters or (), arguments, strict=True))
        tokens = self._substituted(list(macro.body), bound, macro)
        return [replace(token, hidden=token.hidden | hidden) for token in tokens]

    def _substituted(self, body: list[Token], bound: dict[str, list[Token]], macro: Macro) -> list[Token]:
        out: list[Token] = []
        variable = macro.parameters[-1] if macro.variadic and macro.parameters else None
        at = 0
        while at < len(body):
            token = body[at]
            after = body[at + 1] if at + 1 < len(body) else None
            if token.text == "#" and macro.parameters is not None and after is not None and after.text in bound:
                out.append(Token("string", _quoted(bound[after.text]), token.space))
                at += 2
            elif token.text == "##" and out and after is not None:
                at = self._paste(out, body, at, bound, variable)
            elif token.text == "__VA_OPT__" and variable and after is not None and after.text == "(":
                inner, at = _group(body, at + 1)
                if self.run(bound[variable]):
                    out.extend(_spaced(self._substituted(inner, bound, macro), token.space))
            elif token.text in bound:
                pasted = after is not None and after.text == "##"
                new = bound[token.text] if pasted else self.run(bound[token.text])
                out.extend(_spaced(new or ([Token("empty", "")] if pasted else []), token.space))
                at += 1
            else:
                out.append(token)
                at += 1
        return [token for token in out if token.kind != "empty"]

    def _paste(
        self, out: list[Token], body: list[Token], at: int, bound: dict[str, list[Token]], variable: str | None
    ) -> int:
        """Apply the `##` at body[at] to the end of `out`; returns where to go on."""
        right = body[at + 1]
        if right.text == variable and out[-1].text == ",":
            given = self.run(bound[right.text])
            out[-1:] = [out[-1], *_spaced(given, right.space)] if bound[right.text] else []
            return at + 2
        if right.text == "#" and at + 2 < len(body) and body[at + 2].text in bound:
            new, at = [Token("string", _quoted(bound[body[at + 2].text]))], at + 1
        else:
            new = bound.get(right.text, [right])
        left = out.pop()
        if new:
            joined = left.text + new[0].text
            kinds = [kind for kind, _ in lex(joined)]
            if len(kinds) > 1 or kinds == ["comment"]:
                raise NotExpandable(f"pasting gives {joined!r}, which is not one token")
            out.append(Token(kinds[0] if kinds else "empty", joined, left.space))
            out.extend(new[1:])
        else:
            out.append(left)
        return at + 2


def _spaced(tokens: list[Token], space: str) -> list[Token]:
    return [replace(tokens[0], space=space), *tokens[1:]] if tokens else []


def _arguments(rest: list[Token]) -> tuple[list[list[Token]], list[Token], Token]:
    """Take the parenthesised arguments off the end of the reversed `rest`: they, their commas, and the closing one."""
    rest.pop()
    arguments: list[list[Token]] = [[]]
    commas: list[Token] = []
    depth = 0
    while rest:
        token = rest.pop()
        if token.text == ")" and depth == 0:
            return arguments, commas, token
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            commas.append(token)
            arguments.append([])
        else:
            arguments[-1].append(token)
    raise NotExpandable("its arguments do not end inside the region")


def _bound(macro: Macro, arguments: list[list[Token]], commas: list[Token]) -> list[list[Token]]:
    """`arguments` as the macro's parameters take them: the variable part joined again."""
    wanted = len(macro.parameters or ())
    if macro.variadic:
        fixed, variable = arguments[: wanted - 1], arguments[wanted - 1 :]
        joined: list[Token] = []
        for at, argument in enumerate(variable):
            joined += commas[wanted + at - 2 :][:1] * bool(at) + argument
        arguments = [*fixed, joined]
    elif wanted == 0 and arguments == [[]]:
        arguments = []
    if len(arguments) != wanted:
        raise NotExpandable(f"it takes {wanted} arguments and is given {len(arguments)}")
    return arguments


def _group(body: list[Token], at: int) -> tuple[list[Token], int]:
    """The tokens inside the parentheses that open at body[at], and where to go on behind them."""
    depth, index = 0, at
    while index < len(body):
        depth += {"(": 1, ")": -1}.get(body[index].text, 0)
        index += 1
        if depth == 0:
            return body[at + 1 : index - 1], index
    raise NotExpandable("__VA_OPT__ has no closing parenthesis")


def _quoted(tokens: list[Token]) -> str:
    text = ""
    for at, token in enumerate(tokens):
        part = re.sub(r'(["\\])', r"\\\1", token.text) if token.kind == "string" else token.text
        text += (" " if token.space and at else "") + part
    return f'"{text}"'
