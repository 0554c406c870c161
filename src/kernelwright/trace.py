"""The whole record of one rollout: messages, tool calls, results, timings, tokens, provenance.

A trace is enough to go on: policies are functions of the messages so far, so a rollout that was cut off continues from
its last whole message, and nothing else needs to be kept.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal

SCHEMA = 1


@dataclass(frozen=True)
class Candidate:
    """Proposed text for regions of a task, plus compile arguments. A region that is left out stays as it is."""

    code: dict[str, str] = field(default_factory=dict)
    """Region name → replacement text."""
    compile_args: tuple[str, ...] = ()
    explanation: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"final_code": dict(self.code), "explanation": self.explanation, "compile_args": list(self.compile_args)}

    @property
    def is_original(self) -> bool:
        return not self.code and not self.compile_args


@dataclass(frozen=True)
class ToolCall:
    """One call that a policy made. `arguments` is what it sent, before validation."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Usage:
    """Tokens that one message of a model cost; `cost_usd` is None where no price is known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True)
class Message:
    """One message of a rollout. A tool's result carries `data` for the record beside the text the model reads."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    ok: bool | None = None
    """For a tool's result: whether the call succeeded (only such calls count for the reward's tool part)."""
    data: dict[str, Any] = field(default_factory=dict)
    elapsed_s: float = 0.0
    usage: Usage | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Message:
        calls = tuple(ToolCall(**call) for call in data.get("tool_calls", ()))
        usage = Usage(**data["usage"]) if data.get("usage") else None
        return Message(**{**data, "tool_calls": calls, "usage": usage})


class StopReason(StrEnum):
    ANSWERED = "answered"
    """The policy gave a final answer."""
    CALL_LIMIT = "call_limit"
    MESSAGE_LIMIT = "message_limit"
    TIME_LIMIT = "time_limit"
    TOKEN_LIMIT = "token_limit"
    COST_LIMIT = "cost_limit"
    NO_ANSWER = "no_answer"
    """The policy stopped without an answer that could be read."""
    INTERRUPTED = "interrupted"


@dataclass
class Trace:
    """One run of a policy on a task."""

    task: str
    policy: str
    seed: int
    tools: tuple[str, ...]
    messages: list[Message] = field(default_factory=list)
    stop: StopReason | None = None
    answer: Candidate | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "task": self.task,
            "policy": self.policy,
            "seed": self.seed,
            "tools": list(self.tools),
            "messages": [message.to_json() for message in self.messages],
            "stop": self.stop.value if self.stop else None,
            "answer": self.answer.to_json() if self.answer else None,
            "provenance": self.provenance,
        }
