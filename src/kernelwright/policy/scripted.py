"""A policy that says what it was given, one message after the other: for tests, and to replay what a model once said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.calls import parse_calls
from kernelwright.errors import UsageError
from kernelwright.policy import ToolSpec
from kernelwright.trace import Message


@dataclass(frozen=True)
class Scripted:
    """The n-th assistant message is the n-th of `replies`; a text is read for tool calls as a model's would be."""

    replies: Sequence[Message | str]
    name: str = "scripted"

    async def next(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
        n = sum(message.role == "assistant" for message in messages)
        if n >= len(self.replies):
            raise UsageError(
                f"the script ended after {n} messages", "a final answer among them", "one more message in the script"
            )
        reply = self.replies[n]
        if isinstance(reply, Message):
            return reply
        return Message("assistant", reply, tuple(parse_calls(reply, f"call_{n + 1}")[0]))
