"""THE LOOP: a policy and tools take turns on a task until there is an answer or a limit is reached.

The state of a rollout is its messages and nothing else: what comes next is decided by the last of them, and every limit
is a sum over them. So a rollout that was cut off goes on by calling `rollout` with the messages it had. A limit never
throws away what was found: the policy is told once to answer, and at last the best candidate that it benchmarked, or
the original, is the answer. Whether the answer is right is for `kernelwright.verify` to say.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from kernelwright.calls import find_calls
from kernelwright.chat import BENCHMARK, Briefing, candidates_of, opening, parse_answer, said
from kernelwright.errors import ModelMistake
from kernelwright.explain import explained
from kernelwright.policy import Policy
from kernelwright.toolbox import Tools
from kernelwright.trace import Candidate, Message, StopReason, ToolCall, Trace, Usage

REPEATED = ModelMistake(
    "this very call failed before, and was not made again",
    "another call, or the final answer",
    "read what it said then",
)
UNTRIED = ModelMistake(
    "nothing was benchmarked yet",
    "an answer that rests on a result of benchmark_code",
    "the new code in a fenced block, then a call of benchmark_code; or give the same answer again",
)

HOW_TO_GO_ON = """\
Write either a tool call, with new code in a fenced block before it:
<tool_call>
{"name": …, "arguments": {…}}
</tool_call>
or the final answer:
{"final_code": …, "explanation": "…", "compile_args": []}"""


@dataclass(frozen=True)
class RolloutLimits:
    """What one rollout may use; None is no limit. Passing one ends it with the best answer so far, never with an error."""

    max_calls: int = 8
    """Calls of benchmark_code that ran; a call that was malformed costs none."""
    max_messages: int = 200
    time_limit_s: float | None = None
    """Time in the policy and in tools together; a tool that runs when it is over is waited for."""
    max_tokens: int | None = None
    """Prompt and completion tokens of all messages, priced or not."""
    max_cost_usd: float | None = None
    max_mistakes: int = 6
    """Mistakes in a row, of messages with neither a call nor an answer and of calls that could not be made."""
    insist: int = 1
    """How often an answer is sent back where nothing was benchmarked yet; the same answer again is then taken."""
    grace_s: float = 120.0
    """How long beyond the time limit the policy may take for its last message."""


async def rollout(
    briefing: Briefing,
    policy: Policy,
    toolbox: Tools,
    limits: RolloutLimits,
    *,
    seed: int,
    messages: Sequence[Message] = (),
    on_message: Callable[[Message], None] | None = None,
) -> Trace:
    """Run `policy` on the task that `briefing` describes; go on from `messages` where they are given.

    `on_message` hears of each new message as soon as it is whole. Raises InfrastructureError or UserError from the policy
    or a tool; the messages told of until then are enough to go on from.
    """
    trace = Trace(briefing.task, policy.name, seed, toolbox.names, list(messages))
    trace.provenance = {"limits": asdict(limits), "resumed_after": len(messages)}

    def add(message: Message) -> None:
        trace.messages.append(message)
        if on_message is not None:
            on_message(message)

    for first in opening(briefing, toolbox.specs(), seed)[len(messages) :]:
        add(first)
    while True:
        last, limit, told = trace.messages[-1], passed(trace.messages, limits), was_told(trace.messages)
        if last.role == "assistant" and (not last.tool_calls or (limit and told)):
            answer = read_answer(trace.messages, toolbox, 0 if told else limits.insist)
            if isinstance(answer, Candidate):
                return finished(trace, StopReason.ANSWERED, answer)
            if limit and told:
                return finished(trace, limit, answer)
            add(Message("user", correction(answer, last), data={"mistake": str(answer)}))
        elif call := pending_call(trace.messages):
            add(await _called(call, toolbox, limit, trace.messages))
        elif limit and not told:
            add(Message("user", answer_now(limit, trace.messages), data={"limit": limit.value}))
        elif message := await _next(policy, toolbox, limits, trace.messages):
            add(message)
        else:
            return finished(trace, StopReason.TIME_LIMIT, ModelMistake("the policy gave no message in time"))


async def _next(policy: Policy, toolbox: Tools, limits: RolloutLimits, messages: Sequence[Message]) -> Message | None:
    """The policy's next message with the time it took, or None where the time limit and its grace are over first."""
    start = time.monotonic()
    left_s = None if limits.time_limit_s is None else max(0.0, limits.time_limit_s - spent_s(messages)) + limits.grace_s
    try:
        async with asyncio.timeout(left_s) as deadline:
            message = await policy.next(tuple(messages), toolbox.specs())
    except TimeoutError:
        if deadline.expired():
            return None
        raise
    return replace(message, elapsed_s=message.elapsed_s or time.monotonic() - start)


async def _called(call: ToolCall, toolbox: Tools, limit: StopReason | None, messages: Sequence[Message]) -> Message:
    if limit is not None and not (limit is StopReason.CALL_LIMIT and call.name != BENCHMARK):
        return Message(
            "tool",
            f"not run: {why(limit)}",
            tool_call_id=call.id,
            name=call.name,
            ok=False,
            data={"not_run": limit.value},
        )
    if repeats_a_failure(messages, call):
        return Message(
            "tool",
            f"error: {REPEATED}",
            tool_call_id=call.id,
            name=call.name,
            ok=False,
            data={"mistake": str(REPEATED)},
        )
    return await toolbox.call(call, before_call(messages, call))


def finished(trace: Trace, stop: StopReason, answer: Candidate | ModelMistake) -> Trace:
    """`trace` with its answer: the policy's, else the best candidate it benchmarked, else the original."""
    trace.stop = stop
    source, best = "policy", best_of(trace.messages)
    if isinstance(answer, ModelMistake):
        source = best or "original"
        found = candidates_of(trace.messages)[best] if best else Candidate()
        which = f"the best candidate that it benchmarked ({best})" if best else "the original"
        answer = replace(found, explanation=f"The policy gave no answer that could be read ({stop}); this is {which}.")
    trace.answer = explained(answer, trace.messages)
    trace.provenance["answer_from"] = source
    return trace


def best_of(messages: Sequence[Message]) -> str | None:
    """The id of the fastest candidate that a benchmark found correct and faster than the original, if there is one."""
    known = candidates_of(messages)
    speedups = {
        message.data["candidate"]: message.data.get("speedup") or 0.0
        for message in messages
        if message.data.get("candidate") in known and message.data.get("outcome") == "correct"
    }
    best = max(speedups, key=lambda candidate: speedups[candidate], default=None)
    return best if best is not None and speedups[best] > 1 else None


def passed(messages: Sequence[Message], limits: RolloutLimits) -> StopReason | None:
    """The first limit that the messages so far have reached."""
    tokens, cost_usd = spent_tokens(messages), sum(_usage(message).cost_usd or 0.0 for message in messages)
    reached = (
        (StopReason.COST_LIMIT, limits.max_cost_usd is not None and cost_usd >= limits.max_cost_usd),
        (StopReason.TOKEN_LIMIT, limits.max_tokens is not None and tokens >= limits.max_tokens),
        (StopReason.TIME_LIMIT, limits.time_limit_s is not None and spent_s(messages) >= limits.time_limit_s),
        (StopReason.CALL_LIMIT, benchmark_calls(messages) >= limits.max_calls),
        (StopReason.MESSAGE_LIMIT, len(messages) >= limits.max_messages),
        (StopReason.NO_ANSWER, mistakes_in_a_row(messages) >= limits.max_mistakes),
    )
    return next((reason for reason, holds in reached if holds), None)


def _usage(message: Message) -> Usage:
    return message.usage or Usage()


def spent_tokens(messages: Sequence[Message]) -> int:
    return sum(_usage(message).prompt_tokens + _usage(message).completion_tokens for message in messages)


def spent_s(messages: Sequence[Message]) -> float:
    return sum(message.elapsed_s for message in messages)


def benchmark_calls(messages: Sequence[Message]) -> int:
    """Benchmarks that ran, whatever came of them."""
    return sum(message.name == BENCHMARK and "candidate" in message.data for message in messages)


def was_told(messages: Sequence[Message]) -> bool:
    """Whether the policy was told to answer now, and no tool has run since (as it may after a resume with other limits)."""
    for message in reversed(messages):
        if message.role == "tool":
            return False
        if "limit" in message.data and message.role == "user":
            return True
    return False


def pending_call(messages: Sequence[Message]) -> ToolCall | None:
    """The first call of the last assistant message that has no result yet."""
    done = set()
    for message in reversed(messages):
        if message.role == "assistant":
            return next((call for call in message.tool_calls if call.id not in done), None)
        done.add(message.tool_call_id)
    return None


def repeats_a_failure(messages: Sequence[Message], call: ToolCall) -> bool:
    """Whether the policy sent the very same message before, and this call of it failed: small models do that for ever."""
    failed = {message.tool_call_id for message in messages if message.role == "tool" and message.ok is False}
    *earlier, last = (message for message in messages if message.role == "assistant")
    return any(
        message.content == last.content and (other.name, other.arguments) == (call.name, call.arguments)
        for message in earlier
        for other in message.tool_calls
        if other.id in failed
    )


def before_call(messages: Sequence[Message], call: ToolCall) -> str:
    """What the message that made `call` says before it; all of it where its calls are not in the text.

    Where no code stands before the call, what stands after it counts too: small models put the block on either side.
    """
    message = next(message for message in reversed(messages) if message.role == "assistant")
    at = message.tool_calls.index(call)
    text = message.content if at < len(find_calls(message.content)) else said(message)
    found = find_calls(text)
    before = text[: found[at].start] if at < len(found) else text
    return before if "```" in before else text


def mistakes_in_a_row(messages: Sequence[Message]) -> int:
    """How many mistakes the policy made since a tool last did what it was asked for."""
    since = next((n for n, message in enumerate(reversed(messages)) if message.ok), len(messages))
    return sum("mistake" in message.data for message in messages[len(messages) - since :])


def read_answer(messages: Sequence[Message], toolbox: Tools, insist: int = 0) -> Candidate | ModelMistake:
    """The final answer in the last message, or what is wrong with it."""
    try:
        answer = parse_answer(said(messages[-1]), toolbox.regions, candidates_of(messages), toolbox.language)
    except ModelMistake as mistake:
        return mistake
    insisted = sum(message.data.get("mistake") == str(UNTRIED) for message in messages)
    untried = BENCHMARK in toolbox.names and benchmark_calls(messages) == 0
    return UNTRIED if untried and insisted < insist else answer


def correction(mistake: ModelMistake, message: Message) -> str:
    """What the policy is told of a message that was neither a call nor an answer."""
    cut = (
        " Your message was cut at the limit of its length: be briefer."
        if message.data.get("finish") == "length"
        else ""
    )
    return f"{mistake}.{cut}\n{HOW_TO_GO_ON}"


def why(limit: StopReason) -> str:
    """A limit in words."""
    if limit is StopReason.NO_ANSWER:
        return "too many messages in a row could not be used"
    return f"the {limit.value.replace('_', ' ')} of this run is reached"


def answer_now(limit: StopReason, messages: Sequence[Message]) -> str:
    """What the policy is told, once, when a limit is reached."""
    best = best_of(messages)
    offer = f'"{best}", the fastest correct candidate' if best else '"original", since no candidate was faster'
    return (
        f"No further tool is called: {why(limit)}. Write the final answer now: JSON with final_code, explanation, "
        f"compile_args. final_code may be {offer}."
    )
