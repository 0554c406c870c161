"""The registry of tools: their schemas for the policy, and the one way in which a call is made.

A tool is a name, a description, a pydantic model of its arguments and an async function. Whatever a model gets wrong in
a call (an unknown tool, arguments that do not fit, code for a region that is not there) comes back to it as an
observation and never ends the rollout; an InfrastructureError passes through, since it is nobody's mistake in the
rollout. The six tools themselves are in `kernelwright.tools`.
"""

from __future__ import annotations

import difflib
import json
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from kernelwright.blocks import fenced, is_code, merge_functions, named_region, region_code
from kernelwright.calls import UNREADABLE, loads
from kernelwright.errors import ModelMistake
from kernelwright.policy import ToolSpec
from kernelwright.trace import Message, ToolCall

RESULT_CHARS = 6000
"""What a result may hold, about 1,700 tokens; a longer one is cut in its middle."""

Arguments = TypeVar("Arguments", bound=BaseModel)


@dataclass(frozen=True)
class ToolResult:
    """What a tool found: short `text` for the model, `data` (JSON) for the trace, and whether the call succeeded."""

    text: str
    data: dict[str, Any] = field(default_factory=dict)
    ok: bool = True


@dataclass(frozen=True)
class Tool(Generic[Arguments]):
    """One tool. `description` says what it does and what it returns; the model reads it and the fields' descriptions.

    Where `arguments` has a field `code` and a call leaves it out, the message's fenced blocks fill it: as {region: text}
    where the field takes an object, else the text of the last block. `run` may raise ModelMistake.
    """

    name: str
    description: str
    arguments: type[Arguments]
    run: Callable[[Arguments], Awaitable[ToolResult]]


class Tools(Protocol):
    """What a rollout needs to know of its tools, wherever they run."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def regions(self) -> Mapping[str, str]:
        """Name → original text."""
        ...

    @property
    def language(self) -> str: ...

    def specs(self) -> list[ToolSpec]: ...

    async def call(self, call: ToolCall, content: str) -> Message:
        """The result of a call, made in a message that says `content`. Raises InfrastructureError, and nothing else."""
        ...


@dataclass(frozen=True)
class Toolbox:
    """The tools of one rollout, and the task's regions (name → original text), which fenced code is merged into."""

    tools: Sequence[Tool[Any]]
    regions: Mapping[str, str] = field(default_factory=dict)
    language: str = "cpp"
    result_chars: int = RESULT_CHARS
    waited_s: Callable[[], float] = lambda: 0.0
    """How long a person has been waited for so far, which is not a call's time."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self.tools)

    def specs(self) -> list[ToolSpec]:
        return [ToolSpec(tool.name, tool.description, schema_of(tool.arguments)) for tool in self.tools]

    async def call(self, call: ToolCall, content: str) -> Message:
        """Run `call`, made in a message that says `content`. Raises InfrastructureError, and nothing else."""
        start = time.monotonic() - self.waited_s()
        try:
            result = await self._run(call, content)
        except ModelMistake as mistake:
            result = ToolResult(f"error: {mistake}", {"mistake": str(mistake)}, ok=False)
        return Message(
            "tool",
            shorten(result.text, self.result_chars),
            tool_call_id=call.id,
            name=call.name,
            ok=result.ok,
            data=result.data,
            elapsed_s=time.monotonic() - self.waited_s() - start,
        )

    async def _run(self, call: ToolCall, content: str) -> ToolResult:
        tool = next((tool for tool in self.tools if tool.name == call.name), None)
        if tool is None:
            raise self._unknown(call)
        given, ignored = self._arguments(tool, call.arguments, content)
        if "code" in tool.arguments.model_fields:
            given = self._with_code(tool, given, content)
        result = await tool.run(validated(tool, given))
        if not ignored:
            return result
        note = f"(ignored: {', '.join(ignored)})"
        return ToolResult(f"{result.text}\n{note}", {**result.data, "ignored": ignored}, result.ok)

    def _arguments(self, tool: Tool[Any], sent: Mapping[str, Any], content: str) -> tuple[dict[str, Any], list[str]]:
        """Arguments, and what of the call is ignored. A model that garbles code in JSON has mostly written it whole in a
        block before the call: then the block counts and the JSON does not."""
        try:
            return _known_arguments(tool, sent)
        except ModelMistake:
            if "code" not in tool.arguments.model_fields or not _last_block(content):
                raise
            return {}, ["the arguments, which are no JSON; the fenced block was taken"]

    def _unknown(self, call: ToolCall) -> ModelMistake:
        if not call.name:
            return ModelMistake(
                f"a tool call could not be read: {str(call.arguments.get(UNREADABLE))[:200]!r}",
                'JSON of the form {"name": …, "arguments": {…}}',
                "code in a fenced block before the call",
            )
        near = difflib.get_close_matches(call.name, self.names, 1)
        return ModelMistake(
            f"there is no tool {call.name!r}", f"one of {', '.join(self.names)}", near[0] if near else ""
        )

    def _with_code(self, tool: Tool[Any], given: dict[str, Any], content: str) -> dict[str, Any]:
        """`given` with its code put into the form that the tool takes, from the message's blocks where it has none."""
        code, by_region = given.get("code"), _takes_object(tool.arguments, "code")
        if code is None or code in ("", {}):
            found: Any = region_code(content, self.regions, self.language) if by_region else _last_block(content)
            return {**given, "code": found} if found else {key: value for key, value in given.items() if key != "code"}
        if not by_region or not self.regions:
            return given
        decoded = loads(code) if isinstance(code, str) and code.lstrip().startswith("{") else code
        texts = decoded if isinstance(decoded, dict) else {self._only_region(): code}
        return {
            **given,
            "code": {named_region(name, self.regions): self._merged(name, text) for name, text in texts.items()},
        }

    def _only_region(self) -> str:
        if len(self.regions) == 1:
            return next(iter(self.regions))
        raise ModelMistake(
            "code is one text, but the task has several regions",
            f"{{region: text}} for {', '.join(self.regions)}",
            f"a fenced block ```cpp region={next(iter(self.regions))} for each",
        )

    def _merged(self, name: str, text: object) -> str:
        if not isinstance(text, str):
            raise ModelMistake(f"the code for region {name!r} is {json.dumps(text)[:80]}", "a text")
        return merge_functions(self.regions[name], text, self.language)


def _last_block(content: str) -> str | None:
    blocks = [block for block in fenced(content) if is_code(block)]
    return blocks[-1].text if blocks else None


def _known_arguments(tool: Tool[Any], sent: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The arguments that the tool has, and the names of the others. Arguments wrapped once too often are unwrapped."""
    known = tool.arguments.model_fields
    wrapped = sent.get(UNREADABLE)
    if set(sent) == {UNREADABLE} and UNREADABLE not in known:
        if not isinstance(wrapped, dict):
            raise ModelMistake(
                f"the arguments of {tool.name} are no JSON object: {str(wrapped)[:200]!r}",
                f"an object with {', '.join(known)}",
                "code in a fenced block before the call",
            )
        sent = wrapped
    given = {key: value for key, value in sent.items() if key in known and value is not None}
    return given, [f"{key!r}, which {tool.name} does not take" for key in sent if key not in known]


def validated(tool: Tool[Arguments], given: Mapping[str, Any]) -> Arguments:
    """`given` as the tool's arguments; a text that holds JSON or words is tried as what the field wants.

    Raises ModelMistake for the first argument that does not fit.
    """
    try:
        return tool.arguments.model_validate(given)
    except ValidationError as error:
        wrong = {entry["loc"][0] for entry in error.errors(include_url=False) if entry["loc"]}
        lenient = {key: _decoded(tool, key, value) if key in wrong else value for key, value in given.items()}
    try:
        return tool.arguments.model_validate(lenient)
    except ValidationError as error:
        raise _first_mistake(tool, error) from None


def _decoded(tool: Tool[Any], key: str, value: object) -> object:
    if not isinstance(value, str):
        return [value] if _property(tool.arguments, key).get("type") == "array" else value
    decoded = loads(value)
    if decoded is not None or _property(tool.arguments, key).get("type") != "array":
        return value if decoded is None else decoded
    try:
        return shlex.split(value)
    except ValueError:
        return [value]


def _first_mistake(tool: Tool[Any], error: ValidationError) -> ModelMistake:
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        hint = ", or a fenced block of code before the call" if where == "code" else ""
        return ModelMistake(f"{tool.name} needs the argument {where!r}", _expected(tool, where) + hint)
    what = (
        f"{tool.name}: the argument {where!r} is {json.dumps(first['input'], default=str)[:120]}"
        if where
        else tool.name
    )
    return ModelMistake(what, first["msg"].removeprefix("Value error, "), _expected(tool, where.split(".")[0]))


def _expected(tool: Tool[Any], name: str) -> str:
    prop = _property(tool.arguments, name)
    return " ".join(part for part in (kind_of(prop), prop.get("description", "")) if part) or "a value that fits"


def _property(model: type[BaseModel], name: str) -> dict[str, Any]:
    found = schema_of(model)["properties"].get(name, {})
    return found if isinstance(found, dict) else {}


def _takes_object(model: type[BaseModel], name: str) -> bool:
    prop = _property(model, name)
    return any(option.get("type") == "object" for option in [prop, *prop.get("anyOf", ())])


def kind_of(prop: Mapping[str, Any]) -> str:
    """A property's type in a few words, as in `integer` or `one of "a", "b"`."""
    if "enum" in prop:
        return "one of " + ", ".join(json.dumps(value) for value in prop["enum"])
    if "anyOf" in prop:
        return " or ".join(kind_of(option) for option in prop["anyOf"])
    if prop.get("type") == "array":
        return f"list of {kind_of(prop.get('items', {})) or 'values'}"
    return str(prop.get("type", ""))


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model as small models can read it: no titles, no references, no null beside a type."""
    schema = model.model_json_schema()
    simple: dict[str, Any] = _simplified(schema, schema.get("$defs", {}))
    return {"type": "object", "properties": simple.get("properties", {}), "required": simple.get("required", [])}


def _simplified(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_simplified(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        node = {**definitions[node["$ref"].rsplit("/", 1)[-1]], **{k: v for k, v in node.items() if k != "$ref"}}
    options = [option for option in node.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        node = {**options[0], **{k: v for k, v in node.items() if k != "anyOf"}}
        return _simplified(node, definitions)
    if options:
        node = {**node, "anyOf": options}
    simple = {}
    for key, value in node.items():
        if key == "properties":
            simple[key] = {name: _simplified(prop, definitions) for name, prop in value.items()}
        elif not (key in ("title", "$defs") or (key == "default" and value is None)):
            simple[key] = _simplified(value, definitions)
    return simple


def shorten(text: str, limit: int) -> str:
    """`text` in at most about `limit` characters: its beginning and its end, with a note of what was cut between them."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 2 // 3], text[-(limit // 3) :]
    head = head[: head.rfind("\n") + 1] or head
    tail = tail[tail.find("\n") + 1 :] or tail
    cut = len(text) - len(head) - len(tail)
    return f"{head}[… {cut:,} characters were cut here; ask for a smaller part to see them …]\n{tail}"
