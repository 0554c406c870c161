"""Tool calls in the text that a model wrote: found, repaired cautiously, and taken out of it.

Servers without native tool calls leave them in the text, models put them in the middle of their thinking, and small
models write JSON that is nearly right. What cannot be read is still a call, with its raw text as `arguments`, so that
the toolbox tells the model what was wrong; nothing is dropped in silence. Running calls is the toolbox's work.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernelwright.trace import ToolCall

UNREADABLE = "arguments"
"""The key under which arguments stand that are no JSON object, as the model wrote them."""

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
_CLOSERS = re.compile(r"\s*(?:</function>)?\s*(?:</tool_call>)?")
_NAME = re.compile(r"""["']name["']\s*:\s*["']([\w.-]+)["']""")
_DECODER = json.JSONDecoder(strict=False)


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
    at = 0
    while opening := _OPEN.search(text, at):
        at = max(opening.end(), opening.start() + 1)
        for call in _calls_at(text, opening):
            found.append(call)
            at = max(at, call.end)
    if not found and (bare := _bare(text)):
        found.append(bare)
    return found


def _calls_at(text: str, opening: re.Match[str]) -> Iterator[FoundCall]:
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
    elif until := balanced(text, opening.end()):
        yield from (FoundCall(*call, opening.start(), until) for call in _shapes(loads(text[opening.end() : until])))


def _tagged(text: str, opening: re.Match[str]) -> Iterator[FoundCall]:
    if brace := _BRACE.match(text, opening.end()):
        try:
            value, end = _DECODER.raw_decode(text, brace.end())
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
    before = text[: opening.start()].rstrip()
    start = len(before) - len("<tool_call>") if before.endswith("<tool_call>") else opening.start()
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
    return value if isinstance(value, dict) else {UNREADABLE: value}


def objects_in(text: str) -> list[dict[str, Any]]:
    """Every JSON object in `text`, in order, objects inside others left out; broken ones repaired where that is safe."""
    found: list[dict[str, Any]] = []
    at = 0
    while (brace := text.find("{", at)) >= 0:
        try:
            value, at = _DECODER.raw_decode(text, brace)
        except ValueError:
            end = balanced(text, brace)
            value = loads(text[brace:end]) if end else None
            at = end if end and isinstance(value, dict) else brace + 1
        if isinstance(value, dict) and value:
            found.append(value)
    return found


def balanced(text: str, start: int) -> int | None:
    """The end of the brace pair that opens at `start`, braces in strings left out of the count."""
    depth, quote, at = 0, "", start
    while at < len(text):
        char = text[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote else quote
        elif char == '"':
            quote = char
        elif char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return at + 1
        at += 1
    return None


def loads(text: str) -> object:
    """The value of nearly right JSON, or None. What is tried, one upon the other: as it is, unknown escapes,
    trailing commas, triple quotes, brackets left open at the end; at last Python's literals.

    A string that was never closed stays an error: what was cut off there could be half of somebody's code.
    """
    original = text = text.strip()
    for repair in (_as_is, _escapes, _no_trailing_commas, _triple_quotes, _closed):
        text = repair(text)
        try:
            value: object = json.loads(text, strict=False)
        except ValueError:
            continue
        return value
    try:
        literal: object = ast.literal_eval(original)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    return literal


def _as_is(text: str) -> str:
    return text


def _outside_strings(text: str, pattern: str, replacement: str) -> str:
    """Replace `pattern` everywhere but inside double-quoted strings."""
    joined = re.compile(r'"(?:[^"\\]|\\.)*"|' + pattern, re.DOTALL)
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
