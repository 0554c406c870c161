"""The chat-completions format: a rollout's messages as a server wants them, and what a server answered as a reply.

Results of calls that a model wrote as text go back as text, since a server that has no native calls has no place for
them; each message remembers in which form its calls were made. Asking the server is `kernelwright.policy.endpoint`'s work.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernelwright.calls import arguments_of, find_calls
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
    """A whole completion. Raises Garbled where it holds no message."""
    choices = getattr(completion, "choices", None)
    if not choices or choices[0].message is None:
        raise Garbled(f"an answer without choices: {str(completion)[:200]!r}")
    message, usage = choices[0].message, completion.usage
    calls = tuple(
        ToolCall(call.id or "", call.function.name, arguments_of(call.function.arguments))
        for call in message.tool_calls or ()
        if call.type == "function"
    )
    tokens = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
    return Reply(message.content or "", _reasoning(message), calls, choices[0].finish_reason, *tokens)


async def read_stream(stream: AsyncIterable[Any]) -> Reply:
    """A completion that comes in pieces. Raises Garbled where it ends without a reason to end."""
    text, reasoning = "", ""
    calls: dict[int, list[str]] = {}
    reply = Reply("")
    async for chunk in stream:
        if usage := getattr(chunk, "usage", None):
            reply = replace(reply, prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)
        for choice in (getattr(chunk, "choices", None) or ())[:1]:
            text += choice.delta.content or ""
            reasoning += _reasoning(choice.delta)
            for part in choice.delta.tool_calls or ():
                call = calls.setdefault(part.index or 0, ["", "", ""])
                call[0] = part.id or call[0]
                call[1] += (part.function.name if part.function else None) or ""
                call[2] += (part.function.arguments if part.function else None) or ""
            reply = replace(reply, finish=choice.finish_reason or reply.finish)
    if reply.finish is None:
        raise Garbled("a stream that ended in the middle of an answer")
    made = tuple(ToolCall(id_, name, arguments_of(arguments)) for id_, name, arguments in calls.values())
    return replace(reply, text=text, reasoning=reasoning, calls=made)


def _reasoning(message: Any) -> str:
    """What servers give apart from the content, under one of two names that no standard knows."""
    found = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
    return found if isinstance(found, str) else ""


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
