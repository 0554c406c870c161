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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from kernelwright.errors import TaskError
from kernelwright.preprocessor import Expander, Macro, NotExpandable, Token, definitions, lex, tokens_of
from kernelwright.source import Span, splice, to_lf
from kernelwright.toolchain import CompileCommand

_STRINGIFYING = {"assert"}
"""Macros of the standard library that turn their argument's text into a string: nothing is expanded inside."""


@dataclass(frozen=True)
class Expansion:
    """A file in which one region's macros were expanded: `names` at least once; `left` stay, each with its reason."""

    data: bytes
    span: Span
    names: tuple[str, ...]
    left: dict[str, str] = field(default_factory=dict)


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
    walker = _Region(macros, local - macros.keys())
    start = len(to_lf(data[: span.start]))
    new = walker.text(text, start, start + len(span.text))
    changed = splice(data, {span: new})
    grown = replace(span, end=span.end + len(changed) - len(data), text=new,
                    last_line=span.last_line + new.count("\n") - span.text.count("\n"))  # fmt: skip
    used = {name for name in left if re.search(rf"\b{re.escape(name)}\b", new)}
    reasons = {name: left[name] for name in used} | walker.left
    return Expansion(changed, grown, tuple(sorted(walker.names)), dict(sorted(reasons.items())))


def _defined_in(text: str) -> set[str]:
    directives = (piece for kind, piece in lex(text) if kind == "directive")
    return {found[1] for piece in directives if (found := re.match(r"\s*#\s*(?:define|undef)\s+(\w+)", piece))}


@dataclass
class _Region:
    macros: Mapping[str, Macro]
    foreign: set[str]
    """Macros of the file itself: they may turn arguments into strings, so nothing is expanded inside their calls."""
    names: set[str] = field(default_factory=set)
    left: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.expander = Expander(self.macros)

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
        self.expander.met.clear()
        try:
            if any(kind == "directive" for kind, _ in call):
                raise NotExpandable("a directive stands among its arguments")
            tokens = self.expander.run(tokens_of(call))
            follows = next((piece for kind, piece in after if kind not in ("space", "comment")), "")
            if tokens and follows == "(" and self._function_like(tokens[-1]):
                raise NotExpandable("its expansion goes on with what follows the call")
        except NotExpandable as reason:
            self.left[name] = str(reason)
            return None
        self.names |= self.expander.met
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


_SPANS_LINES = re.compile(rb'R"|/\*|\\\r?\n')


def same_program(before: bytes, after: bytes) -> bool:
    """Whether two outputs of the preprocessor are the same tokens.

    Both are mostly what headers hold, so only what lies between their equal first and last lines is read token by token;
    all of it where a token might go on in another line.
    """
    if not (_SPANS_LINES.search(before) or _SPANS_LINES.search(after)):
        before, after = _apart_lines(_program_lines(before), _program_lines(after))
    return program_tokens(before) == program_tokens(after)


def _program_lines(preprocessed: bytes) -> list[bytes]:
    """The lines that hold tokens: no line markers, and no blank ones."""
    return [
        line for line in preprocessed.splitlines() if line.strip() and not re.match(rb"\s*#\s*(?:line\s+)?\d", line)
    ]


def _apart_lines(left: list[bytes], right: list[bytes]) -> tuple[bytes, bytes]:
    """What is left of both without the lines with which both begin and end."""
    least = min(len(left), len(right))
    first = next((at for at in range(least) if left[at] != right[at]), least)
    last = next((at for at in range(least - first) if left[-1 - at] != right[-1 - at]), least - first)
    return b"\n".join(left[first : len(left) - last]), b"\n".join(right[first : len(right) - last])


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
