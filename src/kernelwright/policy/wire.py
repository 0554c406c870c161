"""The chat-completions format: a rollout's messages as a server wants them, and what a server answered as a reply.

Results of calls that a model wrote as text go back as text, since a server that has no native calls has no place for
them; each message remembers in which form its calls were made. Asking the server is `kernelwright.policy.endpoint`'s work.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernelwright.calls import arguments_of, find_calls, well_formed
from kernelwright.policy import ToolSpec
from kernelwright.toolbox import shorten
from kernelwright.trace import Message, ToolCall

SHORTEST_CHARS = 300
"""What is left of an old message where the conversation does not fit the model's context."""


class Garbled(Exception):
    """The server's answer is not what the format says, or ended in its middle; asking again may help."""


@dataclass(frozen=True)
class Reply:
    """One completion; token counts are None where the server reported none."""

    text: str
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def chat_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Tools in the form of the request's `tools`."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
        }
        for tool in tools
    ]


def chat_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages in the form of the request's `messages`; neighbouring user messages become one."""
    messages = [replace(message, content=well_formed(message.content)) for message in messages]
    native = {call.id for message in messages if message.data.get("native") for call in message.tool_calls}
    sent: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool" and message.tool_call_id in native:
            sent.append({"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content})
        elif message.role == "assistant":
            sent.append(_assistant(message))
        else:
            text = message.content
            if message.role == "tool":
                text = f"<tool_response>\n{message.name}: {text}\n</tool_response>"
            if message.role != "system" and sent and sent[-1]["role"] == "user":
                sent[-1] = {"role": "user", "content": f"{sent[-1]['content']}\n{text}"}
            else:
                sent.append({"role": "system" if message.role == "system" else "user", "content": text})
    return sent


def _assistant(message: Message) -> dict[str, Any]:
    if message.data.get("native"):
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in message.tool_calls
        ]
        return {"role": "assistant", "content": message.content, "tool_calls": calls}
    text = message.content
    if message.tool_calls and not find_calls(text):
        text = "\n".join([text, *map(_spelled, message.tool_calls)]).strip()
    return {"role": "assistant", "content": text}


def _spelled(call: ToolCall) -> str:
    body = json.dumps({"name": call.name, "arguments": call.arguments})
    return f"<tool_call>\n{body}\n</tool_call>"


def read_completion(completion: Any) -> Reply:
    """A whole completion. Raises Garbled where it holds no message.

    The client checks no types: whatever JSON a server sent may stand in any field. What is of the wrong type is garbled:
    a server's fault, not something that the model said.
    """
    choice = next(iter(_items(completion, "choices")), None)
    message, usage = getattr(choice, "message", None), getattr(completion, "usage", None)
    if message is None:
        raise Garbled(f"an answer without choices: {str(completion)[:200]!r}")
    calls = tuple(
        ToolCall(
            _text(call, "id"), _text(call.function, "name"), arguments_of(getattr(call.function, "arguments", None))
        )
        for call in _items(message, "tool_calls")
        if getattr(call, "function", None) is not None
    )
    finish = _text(choice, "finish_reason") or None
    reply = Reply(_text(message, "content"), _reasoning(message), calls, finish, *_tokens(usage))
    if not (reply.text or reply.reasoning or calls or finish):
        raise Garbled(f"an answer that says nothing, nor why it ended: {str(completion)[:200]!r}")
    return reply


def _items(holder: Any, name: str) -> list[Any]:
    found = getattr(holder, name, None)
    if found is None:
        return []
    if not isinstance(found, list) or any(item is None or isinstance(item, str | int | list) for item in found):
        raise Garbled(f"an answer whose {name} are {str(found)[:100]!r}")
    return found


def _text(holder: Any, name: str) -> str:
    return well_formed(_raw(holder, name))


def _tokens(usage: Any) -> tuple[int | None, int | None]:
    prompt, completion = (getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens"))
    return (prompt if _is_count(prompt) else None), (completion if _is_count(completion) else None)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**53


async def read_stream(stream: AsyncIterable[Any], piece_s: float) -> Reply:
    """A completion that comes in pieces. Raises Garbled where it ends without a reason to end, and TimeoutError where a
    piece takes longer than `piece_s`: a server that only says that it is still there says nothing."""
    text, reasoning = "", ""
    calls: dict[int, list[str]] = {}
    reply, pieces = Reply(""), aiter(stream)
    while True:
        async with asyncio.timeout(piece_s):
            chunk = await anext(pieces, None)
        if chunk is None:
            break
        if usage := getattr(chunk, "usage", None):
            prompt_tokens, completion_tokens = _tokens(usage)
            reply = replace(reply, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
        for choice in _items(chunk, "choices")[:1]:
            delta = getattr(choice, "delta", None)
            text += _raw(delta, "content")
            reasoning += _raw(delta, "reasoning_content") or _raw(delta, "reasoning")
            for part in _items(delta, "tool_calls"):
                index, function = getattr(part, "index", None), getattr(part, "function", None)
                call = calls.setdefault(index if type(index) is int else 0, ["", "", ""])
                call[0] = _raw(part, "id") or call[0]
                call[1] += _raw(function, "name")
                call[2] += _raw(function, "arguments")
            reply = replace(reply, finish=_raw(choice, "finish_reason") or reply.finish)
    if reply.finish is None:
        raise Garbled("a stream that ended in the middle of an answer")
    made = tuple(
        ToolCall(well_formed(id_), well_formed(name), arguments_of(well_formed(arguments)))
        for id_, name, arguments in calls.values()
    )
    return replace(reply, text=well_formed(text), reasoning=well_formed(reasoning), calls=made)


def _raw(holder: Any, name: str) -> str:
    """A text as it came: the halves of a surrogate pair may lie in two pieces of a stream."""
    found = getattr(holder, name, None)
    if isinstance(holder, str | int | list | dict) or (found is not None and not isinstance(found, str)):
        raise Garbled(f"an answer with {str(found or holder)[:100]!r} in the place of its {name}")
    return found or ""


def _reasoning(message: Any) -> str:
    """What servers give apart from the content, under one of two names that no standard knows."""
    return _text(message, "reasoning_content") or _text(message, "reasoning")


def without_old_results(messages: Sequence[Message]) -> tuple[list[Message], int]:
    """`messages` with the older half of the long tool results cut to a few lines, and how many were cut.

    Where no older result is left to cut, the policy's own older messages are; the last two messages stay whole.
    """
    for role in ("tool", "assistant"):
        long = [n for n, message in enumerate(messages[:-2]) if message.role == role
                and len(message.content) > 2 * SHORTEST_CHARS]  # fmt: skip
        if long:
            cut = set(long[: (len(long) + 1) // 2])
            return [_cut(message) if n in cut else message for n, message in enumerate(messages)], len(cut)
    return list(messages), 0


def _cut(message: Message) -> Message:
    return replace(message, content=shorten(message.content, SHORTEST_CHARS))
