"""Whatever produces the next message of a rollout. This module holds the seam alone; its rooms are the implementations.

A policy is a function of the messages so far: it keeps nothing between calls, so that a rollout that was cut off goes on
from its trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kernelwright.trace import Message


@dataclass(frozen=True)
class ToolSpec:
    """What a policy is told of a tool: its name, what it is for, and the JSON schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


class Policy(Protocol):
    """Whatever produces the next message of a rollout; a function of the messages so far."""

    @property
    def name(self) -> str: ...

    async def next(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
        """The assistant's next message: with tool calls, or without any, which is the final answer."""
        ...
