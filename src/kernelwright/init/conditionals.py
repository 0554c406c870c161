"""Which lines of a source the preprocessor leaves out, as far as its macros tell: `#if 0`, `#ifdef NOWHERE_DEFINED`.

Macros count as defined where any file at hand defines them, in whatever order; a condition that is not clear keeps all its
branches. `kernelwright.preprocessor` has the expansion of macros; here nothing is expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(\(?)[ \t]*([^\r\n]*)", re.MULTILINE)
_DIRECTIVE = re.compile(rb"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif|define)\b[ \t]*(.*)")
_COMMENT = re.compile(rb"/\*.*?(?:\*/|$)|//.*")


def definitions(texts: Iterable[bytes], given: Iterable[str] = ()) -> dict[str, str]:
    """Object-like macros of `texts`, and those `given` to the compiler, with their values."""
    found = dict.fromkeys(given, "1")
    for data in texts:
        for name, parameters, value in _DEFINE.findall(data):
            found[name.decode()] = "" if parameters else _COMMENT.sub(b"", value).decode(errors="replace").strip()
    return found


@dataclass
class _Branch:
    outer: bool
    """Whether the conditional itself is compiled."""
    taken: bool | None
    """Whether an earlier branch was; None where that is not clear."""
    live: bool


def compiled_part(data: bytes, defined: Mapping[str, str]) -> bytes:
    """`data` with blanks for all that is surely left out, so that offsets and lines stay what they are."""
    if b"#" not in data:
        return data
    lines = data.splitlines(keepends=True)
    stack: list[_Branch] = []
    out = []
    for at, line in enumerate(lines):
        found = _DIRECTIVE.match(line)
        if found is None or found[1] == b"define":
            out.append(line if not stack or stack[-1].live else re.sub(rb"[^\r\n]", b" ", line))
            continue
        out.append(line)
        word, rest = found[1].decode(), _COMMENT.sub(b"", found[2]).decode(errors="replace").strip()
        if word.startswith("if"):
            outer = not stack or stack[-1].live
            holds = _holds(word, rest, lines, at, defined)
            stack.append(_Branch(outer, holds, outer and holds is not False))
        elif word == "endif":
            stack[-1:] = []
        elif stack:
            branch = stack[-1]
            holds = True if word == "else" else _holds(word.removeprefix("el"), rest, lines, at, defined)
            branch.live = branch.outer and branch.taken is not True and holds is not False
            branch.taken = True if True in (branch.taken, holds) else None if None in (branch.taken, holds) else False
    return b"".join(out)


def _holds(word: str, rest: str, lines: list[bytes], at: int, defined: Mapping[str, str]) -> bool | None:
    if word == "if":
        return _value(rest, defined)
    name = rest.split()[0] if rest else ""
    if word == "ifndef" and _is_guard(name, lines, at):
        return True
    known = _is_defined(name, defined)
    return known if word == "ifdef" or known is None else not known


def _is_guard(name: str, lines: list[bytes], at: int) -> bool:
    """Whether `#ifndef NAME` is followed by `#define NAME`: an include guard, or a default."""
    following = next((found for line in lines[at + 1 :] if (found := _DIRECTIVE.match(line))), None)
    return following is not None and following[1] == b"define" and following[2].split()[:1] == [name.encode()]


def _is_defined(name: str, defined: Mapping[str, str]) -> bool | None:
    """None for what only the compiler or its headers know."""
    if name in defined:
        return True
    return None if name.startswith("_") or name.endswith("_VERSION") or not name else False


def _value(text: str, defined: Mapping[str, str]) -> bool | None:
    """A condition of the simplest forms: a number, a macro, `defined(X)`, their negation, a comparison with a number."""
    text = re.sub(r"^\((.*)\)$", r"\1", text) if text.count("(") == 1 and not text.startswith("defined") else text
    if found := re.fullmatch(r"(!?)\s*defined\s*\(?\s*(\w+)\s*\)?", text):
        known = _is_defined(found[2], defined)
        return known if known is None else known != bool(found[1])
    if found := re.fullmatch(r"(!?)\s*(\w+)\s*(?:(==|!=|>=|<=|>|<)\s*(\d+))?", text):
        number = _number(found[2], defined)
        if number is None:
            return None
        against = int(found[4] or 0)
        holds = {"==": number == against, "!=": number != against, ">": number > against, "<": number < against,
                 ">=": number >= against, "<=": number <= against}[found[3] or "!="]  # fmt: skip
        return holds != bool(found[1])
    return None


def _number(word: str, defined: Mapping[str, str]) -> int | None:
    for _ in range(4):
        if re.fullmatch(r"\d+", word):
            return int(word)
        if word not in defined:
            return 0 if _is_defined(word, defined) is False else None
        word = defined[word].strip("() ")
    return None
