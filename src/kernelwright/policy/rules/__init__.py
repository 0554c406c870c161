"""The `rules` policy: no model and no network; a deterministic search over source rewrites and compile arguments.

It drives the same tools as a model does and writes the same traces. It keeps nothing between messages: each call replays the
search over the results that the messages hold. What the rules are is `draft`'s list, which `explain` prints; how they are
chosen is `search`'s work.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kernelwright.policy import ToolSpec
from kernelwright.policy.rules.draft import Brief, Move
from kernelwright.policy.rules.search import Analyse, Best, Result, Search, Try
from kernelwright.trace import Message, ToolCall

BENCHMARK, ANALYSIS = "benchmark_code", "compiler_analysis"


class RulesPolicy:
    """Answers every message with the next candidate of the search, and at its end with the best one measured."""

    name = "rules"

    async def next(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
        """The next tool call, or the final answer. Raises ValueError where no message states the task."""
        offered = {tool.name: tool for tool in tools}
        brief = Brief.of(_statement(messages))
        search = Search(brief, ANALYSIS in offered)
        if BENCHMARK not in offered or not brief.regions:
            return _answer(search.best)
        request, made = _replay(search, messages)
        return _answer(search.best) if request is None else _call(request, made, offered)


def _replay(search: Search, messages: Sequence[Message]) -> tuple[Try | Analyse | None, int]:
    """Bring a search to where the messages are: what it asks next, or None at its end, and how many answers it had.

    A call without a result is asked again; a call that was not run, because a limit was reached, ends the search.
    """
    steps, made = search.run(), 0
    request = next(steps, None)
    for message in _answers(messages):
        if request is None or message is None:
            break
        if "not_run" in message.data:
            return None, made
        made += 1
        try:
            request = steps.send(_result(message))
        except StopIteration:
            request = None
    return request, made


def _statement(messages: Sequence[Message]) -> dict[str, Any]:
    found = next((message.data for message in messages if message.role == "user" and "regions" in message.data), None)
    if found is None:
        raise ValueError("no user message carries the task's regions as data")
    return found


def _answers(messages: Sequence[Message]) -> list[Message | None]:
    """The result of each call made so far, in order; None for one whose result is missing."""
    results = {message.tool_call_id: message for message in messages if message.role == "tool"}
    return [results.get(call.id) for message in messages if message.role == "assistant" for call in message.tool_calls]


def _result(message: Message) -> Result:
    data = message.data
    resources = [kernel.get("resources", {}) for part in _parts(data) for kernel in part.get("kernels", ())]
    registers = [found for one in resources if (found := _number(one.get("registers"))) is not None]
    spills = [found for one in resources if (found := _number(one.get("spill_store_bytes"))) is not None]
    missed = [part["missed"] for part in _parts(data) if "missed" in part]
    return Result(
        outcome=str(data.get("outcome", "failed")),
        speedup=_number(data.get("speedup")),
        noise=_number(data.get("noise")) or 0.0,
        reason=str(data.get("reason") or message.content),
        candidate=data.get("candidate"),
        registers=int(max(registers)) if registers else None,
        spill_bytes=int(sum(spills)) if spills else None,
        missed=sum(map(len, missed)) if missed else None,
    )


def _parts(data: dict[str, Any]) -> list[dict[str, Any]]:
    """A compiler report, by region where there are several."""
    return list(data["regions"].values()) if "regions" in data else [data]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _call(request: Try | Analyse, number: int, offered: dict[str, ToolSpec]) -> Message:
    call_id = f"rules-{number + 1}"
    if isinstance(request, Analyse):
        known = "candidate" in offered[ANALYSIS].schema.get("properties", {})
        arguments = {"candidate": request.candidate} if known and request.candidate is not None else {}
        return Message(
            "assistant", "Ask the compiler what limits the region.", (ToolCall(call_id, ANALYSIS, arguments),)
        )
    sent: dict[str, Any] = {"compile_args": list(request.draft.args), "note": request.note}
    if request.draft.code:
        sent["code"] = dict(request.draft.code)
    return Message("assistant", f"{request.note[0].upper()}{request.note[1:]}.", (ToolCall(call_id, BENCHMARK, sent),))


def _answer(best: Best) -> Message:
    draft = best.draft
    answer = {
        "final_code": dict(draft.code) if draft is not None and draft.code else "original",
        "explanation": _explanation(best),
        "compile_args": list(draft.args) if draft is not None else [],
    }
    fired = [move.rule.name for move in draft.moves] if draft is not None else []
    return Message("assistant", json.dumps(answer), data={"rules": fired})


def _explanation(best: Best) -> str:
    lines = [_headline(best)]
    if best.draft is not None:
        lines += [f"- {_reasons(move)}" for move in best.draft.moves]
    if best.trials:
        lines += [
            "Tried, each on top of what was kept before it:",
            *(_trial(best, at) for at in range(len(best.trials))),
        ]
    return "\n".join(lines)


def _headline(best: Best) -> str:
    if best.draft is None or best.result is None:
        return "No rule brought a gain beyond the noise; the original stays."
    which = f"candidate {best.result.candidate}" if best.result.candidate else "the candidate"
    return (f"benchmark_code measured a speedup of {best.speedup:.3f} for {which} (noise {best.result.noise:.3f}). "
            "Rules in it:")  # fmt: skip


def _reasons(move: Move) -> str:
    assumed = f" It assumes that {move.rule.assumes}." if move.rule.assumes else ""
    return f"{move}: {move.rule.reason}.{assumed}"


def _trial(best: Best, at: int) -> str:
    trial = best.trials[at]
    added = ", ".join(map(str, trial.added))
    measured = f"{trial.result.speedup:.3f}" if trial.result.speedup is not None else trial.result.outcome
    return f"- {added}: {measured}{', kept' if trial.kept else ''}"
