"""The loop, driven by scripts: how it ends, what it keeps, and that it can go on from any of its messages."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from pydantic import BaseModel, Field

from kernelwright.chat import Briefing, RegionText
from kernelwright.errors import InfrastructureError, JobFault
from kernelwright.policy import ToolSpec
from kernelwright.policy.scripted import Scripted
from kernelwright.rollout import RolloutLimits, benchmark_calls, best_of, rollout
from kernelwright.toolbox import Tool, Toolbox, ToolResult
from kernelwright.trace import Candidate, Message, StopReason, ToolCall, Trace, Usage

TEXT = "int f() { return 1; }"
BRIEFING = Briefing("t", "cpp", "a CPU", "x86-64", {"f": RegionText("f.cpp", 1, 1, TEXT)}, {"f.cpp": TEXT}, 0.1)


class BenchmarkArguments(BaseModel):
    code: dict[str, str] = Field({})
    compile_args: list[str] = []


class SearchArguments(BaseModel):
    pattern: str


class Workshop:
    """Tools whose speedups are given: a candidate that says `wrong` is wrong, one that says `broken` loses the job."""

    def __init__(self, *speedups: float) -> None:
        self.speedups, self.ran = list(speedups), 0

    async def benchmark(self, arguments: BenchmarkArguments) -> ToolResult:
        code = arguments.code.get("f", "")
        if "broken" in code:
            raise JobFault("the worker was killed")
        self.ran += 1
        data = {"candidate": f"c{self.ran}", "code": arguments.code, "compile_args": arguments.compile_args}
        if "wrong" in code:
            return ToolResult("wrong_result", {**data, "outcome": "wrong_result", "speedup": None})
        speedup = self.speedups[self.ran - 1]
        return ToolResult(f"speedup {speedup}", {**data, "outcome": "correct", "speedup": speedup, "noise": 0.02})

    async def search(self, arguments: SearchArguments) -> ToolResult:
        return ToolResult(f"no hit for {arguments.pattern}", {"hits": 0})

    def box(self) -> Toolbox:
        tools = [Tool("benchmark_code", "", BenchmarkArguments, self.benchmark),
                 Tool("search", "", SearchArguments, self.search)]  # fmt: skip
        return Toolbox(tools, {"f": TEXT})


def bench(body: str, arguments: str = "{}") -> str:
    call = f'{{"name": "benchmark_code", "arguments": {arguments}}}'
    return f"```cpp\nint f() {{ {body}; }}\n```\n<tool_call>\n{call}\n</tool_call>"


SEARCH = '<tool_call>{"name": "search", "arguments": {"pattern": "x"}}</tool_call>'
ANSWER = '{"final_code": "c1", "explanation": "It counts less."}'


def run(
    replies: Sequence[Message | str], shop: Workshop, limits: RolloutLimits | None = None, **given: object
) -> Trace:
    return asyncio.run(rollout(BRIEFING, Scripted(replies), shop.box(), limits or RolloutLimits(), seed=3, **given))  # type: ignore[arg-type]


def said_to(trace: Trace) -> list[str]:
    return [message.content for message in trace.messages[2:] if message.role == "user"]


def test_a_policy_looks_benchmarks_and_answers():
    shop = Workshop(1.5)
    trace = run([SEARCH, bench("return 2", '{"compile_args": ["-O3"]}'), ANSWER], shop)
    assert trace.stop is StopReason.ANSWERED
    assert trace.answer is not None
    assert (trace.answer.code, trace.answer.compile_args) == ({"f": "int f() { return 2; }"}, ("-O3",))
    assert [message.role for message in trace.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert (trace.task, trace.policy, trace.seed, trace.tools) == ("t", "scripted", 3, ("benchmark_code", "search"))
    assert trace.provenance["answer_from"] == "policy"


def test_the_numbers_of_the_explanation_are_those_of_the_trace():
    claim = "Now it is 7x faster and not 1.5x faster. It unrolls 4x; reduces time by 33.3%."
    trace = run([bench("return 2"), f'{{"final_code": "c1", "explanation": "{claim}"}}'], Workshop(1.5))
    assert trace.answer is not None
    assert trace.answer.explanation == (
        "Now it is 7x [not measured] faster and not 1.5x faster. It unrolls 4x; reduces time by 33.3%.\n"
        "Measured by benchmark_code (c1): correct, 1.500 times the original's speed with a noise of 2.0%; not a proof."
    )


def test_an_answer_that_was_not_benchmarked_says_so():
    trace = run([bench("return 2"), '```cpp\nint f() { return 3; }\n```\n{"explanation": "other"}'], Workshop(1.5))
    assert trace.answer is not None
    assert trace.answer.code == {"f": "int f() { return 3; }"}
    assert trace.answer.explanation == "other\nMeasured: nothing, since this candidate was never benchmarked."


def test_the_original_is_an_answer_and_no_error():
    trace = run([bench("return 2"), '{"final_code": "original"}'], Workshop(0.7))
    assert (trace.stop, trace.answer) == (
        StopReason.ANSWERED,
        Candidate({}, (), "Measured: nothing, since this is the original."),
    )


def test_an_answer_before_any_benchmark_is_sent_back_once():
    original = '{"final_code": "original"}'
    trace = run([original, original], Workshop())
    assert (trace.stop, len(said_to(trace))) == (StopReason.ANSWERED, 1)
    assert "nothing was benchmarked yet" in said_to(trace)[0]
    assert said_to(run([original], Workshop(), RolloutLimits(insist=0))) == []


def test_at_the_call_limit_the_policy_is_told_once_and_its_answer_counts():
    shop = Workshop(1.2, 1.5)
    trace = run([bench("return 2"), bench("return 3"), ANSWER], shop, RolloutLimits(max_calls=2))
    assert (trace.stop, shop.ran) == (StopReason.ANSWERED, 2)
    (told,) = said_to(trace)
    assert "call limit" in told
    assert '"c2", the fastest' in told


def test_who_goes_on_calling_past_a_limit_gets_the_best_candidate_as_answer():
    shop = Workshop(1.2, 1.5, 1.1)
    replies = [bench("return 2"), bench("return 3", '{"compile_args": ["-O3"]}'), bench("return 4"), bench("return 5")]
    trace = run(replies, shop, RolloutLimits(max_calls=3))
    assert (trace.stop, shop.ran) == (StopReason.CALL_LIMIT, 3)
    assert trace.answer is not None
    assert (trace.answer.code, trace.answer.compile_args) == ({"f": "int f() { return 3; }"}, ("-O3",))
    assert "best candidate that it benchmarked (c2)" in trace.answer.explanation
    assert trace.provenance["answer_from"] == "c2"


def test_calls_of_one_message_stop_at_the_limit():
    shop = Workshop(1.2)
    trace = run([bench("return 2") + bench("return 3") + SEARCH, ANSWER], shop, RolloutLimits(max_calls=1))
    results = [message for message in trace.messages if message.role == "tool"]
    assert [(message.name, message.ok) for message in results] == [
        ("benchmark_code", True),
        ("benchmark_code", False),
        ("search", True),
    ]
    assert "not run: the call limit" in results[1].content
    assert trace.stop is StopReason.ANSWERED


def test_each_call_of_a_message_takes_the_code_before_it():
    shop = Workshop(1.2, 1.3)
    trace = run([bench("return 2") + "\n" + bench("return 3"), ANSWER], shop)
    codes = [message.data["code"]["f"] for message in trace.messages if message.role == "tool"]
    assert codes == ["int f() { return 2; }", "int f() { return 3; }"]


def test_code_after_a_call_counts_where_none_stands_before_it():
    text = '<tool_call>{"name": "benchmark_code", "arguments": {}}</tool_call>\n```cpp\nint f() { return 2; }\n```'
    trace = run([text, ANSWER], Workshop(1.2))
    assert trace.answer is not None
    assert trace.answer.code == {"f": "int f() { return 2; }"}


def test_a_wrong_candidate_is_never_the_best():
    trace = run([bench("wrong"), bench("return 2"), SEARCH], Workshop(9.0, 0.9), RolloutLimits(max_calls=2))
    assert best_of(trace.messages) is None
    assert (trace.stop, trace.answer and trace.answer.code) == (StopReason.CALL_LIMIT, {})
    assert benchmark_calls(trace.messages) == 2


def test_malformed_calls_cost_no_benchmark_and_unknown_regions_no_rollout():
    shop = Workshop(1.5)
    trace = run([bench("x", '{"code": {"g": "int g();"}}'), '{"final_code": {"g": "x"}}', bench("return 2"), ANSWER], shop,
                RolloutLimits(max_calls=1))  # fmt: skip
    assert (trace.stop, shop.ran) == (StopReason.ANSWERED, 1)
    assert "there is no region 'g'" in trace.messages[3].content
    assert "there is no region 'g'" in trace.messages[5].content


def test_the_very_same_call_that_failed_is_not_made_again_and_again():
    bad = '<tool_call>{"name": "search", "arguments": {"text": "x"}}</tool_call>'
    trace = run([bad, bad, bad, SEARCH, bench("return 2"), ANSWER], Workshop(1.5))
    results = [message.content for message in trace.messages if message.role == "tool"]
    assert "needs the argument 'pattern'" in results[0]
    assert all("this very call failed before" in result for result in results[1:3])
    assert results[3] == "no hit for x"
    assert trace.stop is StopReason.ANSWERED


def test_messages_without_call_or_answer_are_corrected_a_bounded_number_of_times():
    trace = run([bench("return 2"), *["hm"] * 9], Workshop(1.5), RolloutLimits(max_mistakes=3))
    assert trace.stop is StopReason.NO_ANSWER
    assert len(said_to(trace)) == 4
    assert '"c1", the fastest' in said_to(trace)[-1]
    assert trace.provenance["answer_from"] == "c1"


def test_calls_that_cannot_be_made_are_bounded_too():
    bad = bench("x", '{"code": {"fenced_block": "int f();"}}')
    trace = run([bad] * 9, Workshop(), RolloutLimits(max_mistakes=3))
    assert trace.stop is StopReason.NO_ANSWER
    assert [message.ok for message in trace.messages if message.role == "tool"] == [False] * 3
    assert "too many messages in a row" in said_to(trace)[0]


def test_a_message_that_was_cut_off_is_told_so():
    cut = Message("assistant", "<think>long", data={"finish": "length"})
    trace = run([cut, bench("return 2"), ANSWER], Workshop(1.5))
    assert "cut at the limit of its length" in said_to(trace)[0]


@pytest.mark.parametrize(("limits", "usage", "reason"), [
    (RolloutLimits(max_tokens=100), Usage(90, 20), StopReason.TOKEN_LIMIT),
    (RolloutLimits(max_cost_usd=0.01), Usage(90, 20, 0.02), StopReason.COST_LIMIT),
    (RolloutLimits(max_messages=3), None, StopReason.MESSAGE_LIMIT),
    (RolloutLimits(time_limit_s=5), None, StopReason.TIME_LIMIT),
])  # fmt: skip
def test_every_limit_ends_the_rollout_under_its_own_name(limits, usage, reason):
    costly = Message("assistant", "", (ToolCall("a", "search", {"pattern": "x"}),), usage=usage, elapsed_s=6.0)
    trace = run([costly, costly], Workshop(), limits)
    assert trace.stop is reason
    assert reason.value.replace("_", " ") in said_to(trace)[0]
    assert trace.answer is not None
    assert trace.answer.is_original


def test_a_policy_that_hangs_is_left_when_its_grace_is_over():
    class Hanging:
        name = "hanging"

        async def next(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
            await asyncio.Event().wait()
            raise AssertionError

    limits = RolloutLimits(time_limit_s=0.01, grace_s=0.0)
    trace = asyncio.run(rollout(BRIEFING, Hanging(), Workshop().box(), limits, seed=0))
    assert trace.stop is StopReason.TIME_LIMIT


def test_every_message_is_told_of_as_it_comes():
    heard: list[Message] = []
    trace = run([bench("return 2"), ANSWER], Workshop(1.5), on_message=heard.append)
    assert heard == trace.messages


def test_a_rollout_goes_on_from_any_of_its_messages_to_the_same_end():
    replies = [SEARCH + bench("return 2"), "hm", bench("return 3"), ANSWER]
    whole = run(replies, Workshop(1.5, 1.2))
    for cut in range(1, len(whole.messages) + 1):
        shop = Workshop(1.5, 1.2)
        shop.ran = benchmark_calls(whole.messages[:cut])
        resumed = run(
            replies, shop, messages=[Message.from_json(message.to_json()) for message in whole.messages[:cut]]
        )
        timeless = [[replace(message, elapsed_s=0) for message in trace.messages] for trace in (resumed, whole)]
        assert timeless[0] == timeless[1]
        assert (resumed.stop, resumed.answer) == (whole.stop, whole.answer)


def test_a_resumed_rollout_may_have_higher_limits():
    replies = [bench("return 2"), bench("return 3"), ANSWER]
    first = run(replies, Workshop(1.2), RolloutLimits(max_calls=1))
    assert first.stop is StopReason.CALL_LIMIT
    shop = Workshop(1.2, 1.5)
    shop.ran = 1
    second = run(replies, shop, RolloutLimits(max_calls=2), messages=first.messages)
    assert (second.stop, shop.ran) == (StopReason.ANSWERED, 2)


def test_a_fault_of_the_machine_ends_the_rollout_and_what_was_heard_is_enough_to_go_on():
    heard: list[Message] = []
    with pytest.raises(InfrastructureError, match="worker was killed"):
        run([bench("broken"), ANSWER], Workshop(), on_message=heard.append)
    assert heard[-1].role == "assistant"
