"""Macro expansion for regions whose code hides in macros of the project's own headers (`expand_macros` of a region).

Only macros defined by the named headers are expanded, textually and only inside the region: whole-file preprocessing
would inline every system header and rewrite attributes. What cannot be expanded with certainty (defined twice,
undefined somewhere, recursive, `__LINE__`) simply stays a macro call. The result is not trusted: `expand_proven` keeps
an expansion only if the real preprocessor gives the same tokens before and after. Running it is left to the caller.

How a task uses it: the pristine baseline of every workspace gets `Expansion.data` in place of the file, and the region
is `Expansion.span` in it (for `lines = [...]` the last line moves with the text).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from kernelwright.errors import TaskError
from kernelwright.source import Span, splice, to_lf
from kernelwright.toolchain import CompileCommand

_LEXER = re.compile(
    r"""
    (?P<directive>(?<!\\\n)^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)
  | (?P<space>(?:[ \t\f\v\r]|\\\n)+|\n)
  | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<string>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)"
        |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'\w|[\w.])*)
  | (?P<name>[^\W0-9]\w*)
  | (?P<mark>%:%:|\.\.\.|<=>|<<=|>>=|->\*|\#\#|<<|>>|->|\+\+|--|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|\.\*)
  | (?P<other>.)
    """,
    re.X | re.S | re.M,
)
_LEFT_ALONE = {"__LINE__", "__COUNTER__", "__FILE__"}
_STRINGIFYING = {"assert"}
"""Macros of the standard library that turn their argument's text into a string: nothing is expanded inside."""


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


@dataclass(frozen=True)
class Expansion:
    """A file in which one region's macros were expanded: `names` at least once; `left` stay, each with its reason."""

    data: bytes
    span: Span
    names: tuple[str, ...]
    left: dict[str, str] = field(default_factory=dict)


class _NotExpandable(Exception):
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


def _tokens(pieces: Iterable[tuple[str, str]]) -> list[Token]:
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
    tokens = tuple(_tokens(lex(directive, found.start(3))))
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


def expand(data: bytes, headers: Mapping[str, str], span: Span, only: frozenset[str] | None = None) -> Expansion:
    """The file `data` with the macros of `headers` (path → text) expanded inside `span`; `only` limits which ones."""
    macros, left = definitions(headers)
    text = to_lf(data)
    local = _defined_in(text)
    for name in local.intersection(macros):
        if not any(to_lf(header.encode("utf-8", "surrogateescape")) == text for header in headers.values()):
            left[name] = "the file itself defines it too"
            del macros[name]
    if only is not None:
        macros = {name: macro for name, macro in macros.items() if name in only}
    expander = _Expander(macros, local - macros.keys())
    start = len(to_lf(data[: span.start]))
    new = expander.text(text, start, start + len(span.text))
    changed = splice(data, {span: new})
    grown = replace(span, end=span.end + len(changed) - len(data), text=new,
                    last_line=span.last_line + new.count("\n") - span.text.count("\n"))  # fmt: skip
    used = {name for name in left if re.search(rf"\b{re.escape(name)}\b", new)}
    reasons = {name: left[name] for name in used} | expander.left
    return Expansion(changed, grown, tuple(sorted(expander.names)), dict(sorted(reasons.items())))


def _defined_in(text: str) -> set[str]:
    directives = (piece for kind, piece in lex(text) if kind == "directive")
    return {found[1] for piece in directives if (found := re.match(r"\s*#\s*(?:define|undef)\s+(\w+)", piece))}


@dataclass
class _Expander:
    macros: Mapping[str, Macro]
    foreign: set[str]
    """Macros of the file itself: they may turn arguments into strings, so nothing is expanded inside their calls."""
    names: set[str] = field(default_factory=set)
    left: dict[str, str] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)
    """Macros met in the call at hand; they count once it is known to be expandable."""

    def text(self, text: str, start: int, end: int) -> str:
        """text[start:end] with every macro call expanded that can be."""
        pieces = lex(text, start, end)
        out: list[str] = []
        at = 0
        while at < len(pieces):
            kind, piece = pieces[at]
            length = self._call_length(pieces, at) if kind == "name" else None
            if length is None:
                out.append(piece)
                at += 1
                continue
            before = text[:start] + "".join(out)
            call = pieces[at : at + length]
            done = self._expanded(call, pieces[at + length :], before) if piece in self.macros else None
            out.append("".join(part for _, part in call) if done is None else done)
            at += length
        return "".join(out)

    def _call_length(self, pieces: Sequence[tuple[str, str]], at: int) -> int | None:
        """How many pieces the call at `at` takes: 1 for an object-like macro, None where there is no call."""
        name = pieces[at][1]
        macro = self.macros.get(name)
        if macro is None and name not in self.foreign and name not in _STRINGIFYING:
            return None
        if macro is not None and macro.parameters is None:
            return 1
        depth, index = 0, at + 1
        while index < len(pieces):
            kind, piece = pieces[index]
            if depth == 0 and kind not in ("space", "comment") and piece != "(":
                return None
            depth += {"(": 1, ")": -1}.get(piece, 0)
            index += 1
            if depth == 0 and piece == ")":
                return index - at
        return None

    def _expanded(self, call: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]], before: str) -> str | None:
        name = call[0][1]
        self.met = set()
        try:
            if any(kind == "directive" for kind, _ in call):
                raise _NotExpandable("a directive stands among its arguments")
            tokens = self._run(_tokens(call))
            follows = next((piece for kind, piece in after if kind not in ("space", "comment")), "")
            if tokens and follows == "(" and self._function_like(tokens[-1]):
                raise _NotExpandable("its expansion goes on with what follows the call")
        except _NotExpandable as reason:
            self.left[name] = str(reason)
            return None
        self.names |= self.met
        line = before[before.rfind("\n") + 1 :]
        text = _layout(tokens, line[: len(line) - len(line.lstrip())], own_line=not line.strip())
        last = before[-1:]
        if not text:
            return " " if last.strip() and after and after[0][0] != "space" else ""
        glued = bool(last.strip()) and not _apart(before[-40:].split()[-1], text[:40])
        trailing = bool(after) and not _apart(text[-40:], after[0][1])
        return (" " if glued else "") + text + (" " if trailing else "")

    def _function_like(self, token: Token) -> bool:
        macro = self.macros.get(token.text)
        return macro is not None and macro.parameters is not None

    def _run(self, tokens: list[Token]) -> list[Token]:
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
                raise _NotExpandable("it is recursive")
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
                if self._run(bound[variable]):
                    out.extend(_spaced(self._substituted(inner, bound, macro), token.space))
            elif token.text in bound:
                pasted = after is not None and after.text == "##"
                new = bound[token.text] if pasted else self._run(bound[token.text])
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
            given = self._run(bound[right.text])
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
                raise _NotExpandable(f"pasting gives {joined!r}, which is not one token")
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
    raise _NotExpandable("its arguments do not end inside the region")


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
        raise _NotExpandable(f"it takes {wanted} arguments and is given {len(arguments)}")
    return arguments


def _group(body: list[Token], at: int) -> tuple[list[Token], int]:
    """The tokens inside the parentheses that open at body[at], and where to go on behind them."""
    depth, index = 0, at
    while index < len(body):
        depth += {"(": 1, ")": -1}.get(body[index].text, 0)
        index += 1
        if depth == 0:
            return body[at + 1 : index - 1], index
    raise _NotExpandable("__VA_OPT__ has no closing parenthesis")


def _quoted(tokens: list[Token]) -> str:
    text = ""
    for at, token in enumerate(tokens):
        part = re.sub(r'(["\\])', r"\\\1", token.text) if token.kind == "string" else token.text
        text += (" " if token.space and at else "") + part
    return f'"{text}"'


def _apart(left: str, right: str) -> bool:
    """Whether `left` and `right` written without a blank are still the same tokens."""
    joined = lex(left + right)
    return joined == lex(left) + lex(right)


_BLOCK_BEFORE = {")", "else", "do", "try", ";", "{", "}", ""}
_GOES_ON = {"while", "else", "catch", ";", ",", ")", "(", "]", "."}


def _layout(tokens: list[Token], indent: str, own_line: bool) -> str:
    """Tokens as text: statements on lines of their own where there are several, indented by depth below `indent`.

    A short expansion in the middle of a line stays there.
    """
    breaks = _breaks(tokens)
    long = sum(len(token.text) + bool(token.space) for token in tokens) > 110 - len(indent)
    several = long or (own_line and any(breaks))
    out, depth = "", 0
    for at, token in enumerate(tokens):
        if token.text in "})" and depth:
            depth -= 1
        if at and several and (breaks[at] or token.space == "\n"):
            out += "\n" + indent + "  " * depth
        elif at and ((token.space and token.text not in (",", ";")) or not _apart(tokens[at - 1].text, token.text)):
            out += " "
        out += token.text
        depth += token.text in ("{", "(")
    return out


def _breaks(tokens: list[Token]) -> list[bool]:
    """For each token whether a new line starts before it: after statements and around blocks, not in parentheses."""
    breaks, depth, blocks = [False] * (len(tokens) + 1), 0, [False]
    for at, token in enumerate(tokens):
        follows = tokens[at + 1].text if at + 1 < len(tokens) else ""
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "{":
            blocks.append((tokens[at - 1].text if at else "") in _BLOCK_BEFORE)
            breaks[at + 1] = blocks[-1]
        elif token.text == "}" and len(blocks) > 1:
            block = blocks.pop()
            breaks[at] = breaks[at] or block
            breaks[at + 1] = block and follows not in _GOES_ON
        elif token.text == ";" and depth == 0:
            breaks[at + 1] = True
    return breaks[: len(tokens)]


def program_tokens(preprocessed: bytes) -> list[str]:
    """The tokens of a preprocessor's output; line markers are left out, other directives end with a line end."""
    tokens = []
    for kind, piece in lex(preprocessed.decode("utf-8", errors="surrogateescape").replace("\r\n", "\n")):
        if kind == "directive":
            if not re.match(r"\s*#\s*(?:line\s+)?\d", piece):
                tokens += [text for other, text in lex(piece.strip().replace("#", " # ", 1)) if other != "space"]
                tokens.append("\n")
        elif kind not in ("space", "comment"):
            tokens.append(piece)
    return tokens


def same_program(before: bytes, after: bytes) -> bool:
    """Whether two outputs of the preprocessor are the same tokens."""
    return program_tokens(before) == program_tokens(after)


def preprocess_arguments(command: CompileCommand) -> tuple[str, ...]:
    """The compile command as one that only preprocesses, to stdout; `__LINE__` is pinned: expansion moves lines."""
    argv: list[str] = []
    skip = False
    for word in command.argv:
        if skip or word in ("-c", "-dc", "-MD", "-MMD", "-MP"):
            skip = False
        elif word in ("-o", "-MF", "-MT", "-MQ"):
            skip = True
        else:
            argv.append(word)
    quiet = "-Wno-builtin-macro-redefined"
    nvcc = PurePosixPath(command.argv[0]).name == "nvcc"
    return (*argv, "-E", "-D__LINE__=0", *(("-Xcompiler", quiet) if nvcc else (quiet,)))


async def expand_proven(
    data: bytes, headers: Mapping[str, str], span: Span, preprocess: Callable[[bytes], Awaitable[bytes]]
) -> Expansion:
    """Expand what can be expanded with proof: `preprocess` gives the preprocessor's output for a version of the file.

    Where expanding everything changes the program, each macro is tried by itself and only those that prove harmless
    stay expanded. Raises TaskError where nothing could be expanded, with the reasons.
    """
    before = await preprocess(data)
    whole = expand(data, headers, span)
    if whole.names and same_program(before, await preprocess(whole.data)):
        return whole
    kept: frozenset[str] = frozenset()
    refused: dict[str, str] = {}
    for name in whole.names:
        tried = expand(data, headers, span, kept | {name})
        if same_program(before, await preprocess(tried.data)):
            kept |= {name}
        else:
            refused[name] = "its expansion would change the program"
    best = expand(data, headers, span, kept)
    best = replace(best, left=best.left | refused)
    if not best.names:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in best.left.items()) or "it uses none of their macros"
        raise TaskError(f"no macro of {', '.join(headers)} can be expanded in the region {span.region!r} ({reasons})",
                        "headers that define macros which the region uses", "leave expand_macros out")  # fmt: skip
    return best
