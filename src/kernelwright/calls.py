"""Tool calls in the text that a model wrote: found, repaired cautiously, and taken out of it.

Servers without native tool calls leave them in the text, models put them in the middle of their thinking, and small
models write JSON that is nearly right. What cannot be read is still a call, with its raw text as `arguments`, so that
the toolbox tells the model what was wrong; nothing is dropped in silence. Running calls is the toolbox's work.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernelwright.trace import ToolCall

UNREADABLE = "arguments"
"""The key under which arguments stand that are no JSON object, as the model wrote them."""

UNREADABLE_CHARS = 2000
FAILED_DECODE = 1000
"""What decoding something that is no JSON may cost, in characters looked at."""
_OPEN = re.compile(
    r"""<tool_call>|<function=([\w.-]+)>|```[^\n`]*\n(?=\s*[{\[])|^[ \t]*(?=\{\s*["']name["']\s*:)""", re.MULTILINE
)
_PARAMETER = re.compile(
    r"<parameter=([\w.-]+)>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|(?=</function>)|\Z)", re.DOTALL
)
_FUNCTION = re.compile(r"\s*<function=")
_BRACE = re.compile(r"\s*(?:```(?:json)?\s*)?(?=[{\[])")
_TAG_END = re.compile(r"</tool_call>|(?=<tool_call>)|\Z")
_FUNCTION_END = re.compile(r"</function>|(?=<tool_call>|<function=)|\Z")
_AFTER_JSON = re.compile(r"\s*(?:```)?\s*\}*\s*(?:</tool_call>)?")
_NEAR = 200
"""How far before a `<function=…>` its `<tool_call>` is looked for."""
_CLOSERS = re.compile(r"\s*(?:</function>)?\s*(?:</tool_call>)?")
_NAME = re.compile(r"""["']name["']\s*:\s*["']([\w.-]+)["']""")
MAX_DEPTH = 64
"""Levels of a value; what nests deeper no tool takes, and a record of it could not be written."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _no_json(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_no_json)


@dataclass(frozen=True)
class FoundCall:
    """A call and the part of the text that it takes up."""

    name: str
    arguments: dict[str, Any]
    start: int
    end: int


def parse_calls(text: str, prefix: str = "call") -> tuple[list[ToolCall], str]:
    """All calls in `text`, in order, with ids `prefix_1`, `prefix_2`, …, and the text without them."""
    found = find_calls(text)
    rest, at = [], 0
    for call in found:
        rest.append(text[at : call.start])
        at = max(at, call.end)
    calls = [ToolCall(f"{prefix}_{n}", call.name, call.arguments) for n, call in enumerate(found, 1)]
    return calls, "".join([*rest, text[at:]]).strip()


def find_calls(text: str) -> list[FoundCall]:
    """Calls in `<tool_call>` or `<function=…>` tags, as JSON in a fence of any kind or on lines of its own."""
    found: list[FoundCall] = []
    at, pairs = 0, _Pairs(text)
    while opening := _OPEN.search(text, at):
        at = max(opening.end(), opening.start() + 1)
        for call in _calls_at(text, opening, pairs):
            found.append(call)
            at = max(at, call.end)
    if not found and (bare := _bare(text)):
        found.append(bare)
    return found


def _calls_at(text: str, opening: re.Match[str], pairs: _Pairs) -> Iterator[FoundCall]:
    if opening[1]:
        yield _function(text, opening)
    elif opening[0] == "<tool_call>":
        if not _FUNCTION.match(text, opening.end()):
            yield from _tagged(text, opening)
    elif opening[0].startswith("```"):
        close = text.find("```", opening.end())
        stop, end = (close, close + 3) if close >= 0 else (len(text), len(text))
        shapes = _shapes(loads(text[opening.end() : stop]))
        yield from (FoundCall(*call, opening.start(), end) for call in shapes)
    elif until := pairs.end(opening.end()):
        yield from (FoundCall(*call, opening.start(), until) for call in _shapes(loads(text[opening.end() : until])))


def _tagged(text: str, opening: re.Match[str]) -> Iterator[FoundCall]:
    if brace := _BRACE.match(text, opening.end()):
        try:
            value, end = _decoded(text, brace.end())
        except ValueError:
            pass
        else:
            if calls := _shapes(value):
                yield from (FoundCall(*call, opening.start(), _end(_AFTER_JSON, text, end)) for call in calls)
                return
    stop = _TAG_END.search(text, opening.end())
    assert stop is not None
    body = text[opening.end() : stop.start()].strip()
    if calls := _shapes(loads(body)):
        yield from (FoundCall(*call, opening.start(), stop.end()) for call in calls)
    elif body:
        name = _NAME.search(body)
        yield FoundCall(name[1] if name else "", {UNREADABLE: body}, opening.start(), stop.end())


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where `pattern`, if it stands at `at`, ends."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _function(text: str, opening: re.Match[str]) -> FoundCall:
    stop = _FUNCTION_END.search(text, opening.end())
    assert stop is not None
    body = text[opening.end() : stop.start()]
    before = text[max(0, opening.start() - _NEAR) : opening.start()].rstrip()
    tagged = before.endswith("<tool_call>")
    start = max(0, opening.start() - _NEAR) + len(before) - len("<tool_call>") if tagged else opening.start()
    span = (start, _end(_CLOSERS, text, stop.end()))
    if "<parameter=" in body:
        return FoundCall(opening[1], dict(_PARAMETER.findall(body)), *span)
    value = loads(body) if body.strip() else {}
    return FoundCall(opening[1], value if isinstance(value, dict) else {UNREADABLE: body.strip()}, *span)


def _bare(text: str) -> FoundCall | None:
    stripped = re.sub(r"^.*</think>", "", text, flags=re.DOTALL).strip()
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return None
    shapes = _shapes(loads(stripped))
    start = text.rindex(stripped)
    return FoundCall(*shapes[0], start, start + len(stripped)) if shapes else None


def _shapes(value: object) -> list[tuple[str, dict[str, Any]]]:
    """The calls that a decoded value spells: one object, a list of them, or OpenAI's nested `function`."""
    if isinstance(value, list):
        return [shape for item in value for shape in _shapes(item)]
    if not isinstance(value, dict):
        return []
    call = value["function"] if isinstance(value.get("function"), dict) else value
    name = call.get("name")
    key = next((key for key in ("arguments", "parameters") if key in call), None)
    if not isinstance(name, str) or key is None:
        return []
    return [(name, arguments_of(call[key]))]


def arguments_of(value: object) -> dict[str, Any]:
    """Arguments as an object, also where a server or a model wrote them as a string that holds one."""
    if isinstance(value, str):
        decoded = loads(value) if value.strip() else {}
        value = decoded if isinstance(decoded, dict) else value
    if value is None:
        return {}
    try:
        value = _plain(value)
    except ValueError:
        value = str(value)[:UNREADABLE_CHARS]
    return value if isinstance(value, dict) else {UNREADABLE: value}


def objects_in(text: str) -> list[dict[str, Any]]:
    """Every JSON object in `text`, in order, objects inside others left out; broken ones repaired where that is safe."""
    found: list[dict[str, Any]] = []
    at, pairs = 0, _Pairs(text)
    while pairs.may_look and (brace := _OBJECT.search(text, at)):
        try:
            value, at = _decoded(text, brace.start())
        except ValueError:
            pairs.pay(FAILED_DECODE)
            end = pairs.end(brace.start())
            value = loads(text[brace.start() : end]) if end else None
            at = end if end and isinstance(value, dict) else brace.end()
        if isinstance(value, dict) and value:
            found.append(value)
    return found


class _Pairs:
    """Where brace pairs of a text end. Looking is paid from a budget in proportion to the text: braces that never close
    would else be followed to its end one after the other, for hours in a message of a hundred kilobytes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._budget = 100_000 + 10 * len(text)

    @property
    def may_look(self) -> bool:
        return self._budget > 0

    def pay(self, chars: int) -> None:
        self._budget -= chars

    def end(self, start: int) -> int | None:
        """The end of the pair that opens at `start`, braces in strings left out of the count; None where there is none,
        or where it was too much to look for."""
        depth, quote, stop = 0, False, min(len(self._text), start + self._budget)
        for mark in _MARKS.finditer(self._text, start, stop):
            if mark[0] == '"':
                quote = not quote
            elif not quote and mark[0] in "{}":
                depth += 1 if mark[0] == "{" else -1
                if depth == 0:
                    self._budget -= 4 * (mark.end() - start)  # it is read too, and perhaps repaired
                    return mark.end()
        self._budget -= stop - start
        return None


_OBJECT = re.compile(r"""\{(?=\s*+(?:"(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+')\s*+:)""", re.DOTALL)
_MARKS = re.compile(r"\\.|[\"{}]", re.DOTALL)


def _decoded(text: str, at: int) -> tuple[object, int]:
    """The JSON value at `at` and where it ends. Raises ValueError, also for one that nests too deep."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError:
        raise ValueError("too deep") from None
    return _plain(value), end


def _plain(value: object, depth: int = 0) -> object:
    """`value` as JSON can say it again, lone surrogates replaced (they can be neither sent nor written). Raises ValueError
    where it holds what JSON has not (a Python literal may), or nests deeper than `MAX_DEPTH`."""
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("keys that are no text")
        return {well_formed(key): _plain(item, depth + 1) for key, item in value.items()}
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"{type(value).__name__} is no JSON")


def well_formed(text: str) -> str:
    """`text` with surrogate pairs joined and those without a partner replaced: both come from servers that split them."""
    if not _LONE_SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def loads(text: str) -> object:
    """The value of nearly right JSON, or None. What is tried, one upon the other: as it is, unknown escapes,
    trailing commas, triple quotes, brackets left open at the end; at last Python's literals.

    A string that was never closed stays an error: what was cut off there could be half of somebody's code.
    """
    original = text = text.strip()
    for repair in (_as_is, _escapes, _no_trailing_commas, _triple_quotes, _closed):
        text = repair(text)
        try:
            value, end = _decoded(text, 0)
        except ValueError:
            continue
        if end == len(text):
            return value
    try:
        with warnings.catch_warnings(action="ignore"):  # of Python's, about escapes in a model's text
            return _plain(ast.literal_eval(original))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _as_is(text: str) -> str:
    return text


def _outside_strings(text: str, pattern: str, replacement: str) -> str:
    """Replace `pattern` everywhere but inside double-quoted strings."""
    joined = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|' + pattern, re.DOTALL)
    return joined.sub(lambda found: found[0] if found[0].startswith('"') else replacement, text)


def _no_trailing_commas(text: str) -> str:
    return _outside_strings(text, r",(?=\s*[}\]])", "")


def _escapes(text: str) -> str:
    """Backslashes that JSON does not know: dropped before quotes that need none, else doubled."""
    return re.sub(r'\\(["\\/bfnrtu])|\\([\'`])?', lambda found: found[0] if found[1] else found[2] or r"\\", text)


def _triple_quotes(text: str) -> str:
    return re.sub(r'"""(.*?)"""', lambda found: json.dumps(found[1]), text, flags=re.DOTALL)


def _closed(text: str) -> str:
    """`text` with the brackets closed that stayed open at its end, unless a string stayed open too."""
    stack: list[str] = []
    in_string = False
    at = 0
    while at < len(text):
        char = text[at]
        if in_string:
            at += char == "\\"
            in_string = char != '"'
        elif char == '"':
            in_string = True
        elif char in "{[":
            stack.append("}" if char == "{" else "]")
        elif char in "}]" and stack:
            stack.pop()
        at += 1
    return text if in_string else text + "".join(reversed(stack))
