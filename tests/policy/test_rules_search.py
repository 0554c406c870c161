"""How the rules policy searches: driven by a world of our own that answers each candidate, with no compiler."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelwright.policy import ToolSpec
from kernelwright.policy.rules import RulesPolicy
from kernelwright.trace import Message

SOURCE = """\
#include <cmath>
void sweep(int n, float *u, const float *v, float s) {
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) {
      u[i * n + j] = 0.5 * v[i * n + j] * pow(s, 2.0f);
    }
  }
}
int main() { return 0; }
"""
BENCHMARK = ToolSpec("benchmark_code", "", {"properties": {}})
ANALYSIS = ToolSpec("compiler_analysis", "", {"properties": {"candidate": {}}})

Answer = Callable[[str, list[str]], dict[str, Any]]
"""(the region's text, compile arguments) → the data of a benchmark's result."""


def statement(**changes: Any) -> Message:
    first, text = SOURCE.index("void sweep"), SOURCE[SOURCE.index("void sweep") : SOURCE.index("\nint main")]
    data = {
        "task": "sweep", "language": "cpp", "arch": "native", "files": {"sweep.cpp": SOURCE}, "flags": ["-O2"],
        "regions": {"sweep": {"file": "sweep.cpp", "first_line": SOURCE.count("\n", 0, first) + 1, "last_line": 8,
                              "text": text}},
        "tunables": {}, "forbid_flags": [], "baseline_s": 1.0, "min_effect": 0.01, "max_calls": 8,
    }  # fmt: skip
    return Message("user", "make it faster", data={**data, **changes})


@dataclass
class World:
    """Answers calls and keeps what was asked. A speed is given by what a candidate has in it."""

    answer: Answer
    report: dict[str, Any] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    analysed: int = 0

    def call(self, message: Message) -> Message:
        (call,) = message.tool_calls
        if call.name == "compiler_analysis":
            self.analysed += 1
            return Message("tool", "", tool_call_id=call.id, name=call.name, ok=True, data=self.report)
        self.asked.append(call.arguments)
        name = f"c{len(self.asked)}"
        text = call.arguments.get("code", {}).get("sweep", "")
        data = {"candidate": name, "speedup": None, "noise": 0.01, "reason": "", "outcome": "correct"}
        data |= self.answer(text, call.arguments["compile_args"])
        return Message("tool", "", tool_call_id=call.id, name=call.name, ok=True, data=data)


def run(
    world: World, first: Message, tools: Sequence[ToolSpec] = (BENCHMARK,), messages: Sequence[Message] = ()
) -> list[Message]:
    """A whole rollout from `messages` on."""
    log = [Message("system", ""), first, *messages]
    for _ in range(60):
        message = asyncio.run(RulesPolicy().next(tuple(log), tools))
        log.append(message)
        if not message.tool_calls:
            return log
        log.append(world.call(message))
    raise AssertionError("the policy never answered")


def answer_of(log: Sequence[Message]) -> dict[str, Any]:
    found = json.loads(log[-1].content)
    assert isinstance(found, dict)
    return found


def gains(**factors: float) -> Answer:
    """A world in which each thing present multiplies the speed: flags by name, rules by a word of their text."""

    def answer(text: str, args: list[str]) -> dict[str, Any]:
        speed = 1.0
        for name, factor in factors.items():
            word = name.replace("_", "-")
            speed *= factor if f"-{word}" in args or word in text or name in text else 1.0
        return {"speedup": speed}

    return answer


def swapped(text: str) -> bool:
    return bool(text) and text.index("int i = 0") < text.index("int j = 0")


def test_the_first_candidate_holds_all_that_rarely_loses() -> None:
    world = World(gains())
    run(world, statement())
    first = world.asked[0]
    assert first["compile_args"] == ["-O3", "-march=native", "-fno-math-errno"]
    assert "0.5f * v" in first["code"]["sweep"]
    assert "(s * s)" in first["code"]["sweep"]
    assert "__restrict__" in first["code"]["sweep"]


def test_without_a_gain_the_original_comes_back() -> None:
    log = run(World(gains()), statement())
    assert answer_of(log) == {
        "final_code": "original", "compile_args": [], "explanation": answer_of(log)["explanation"]}  # fmt: skip
    assert log[-1].data == {"rules": []}


def test_what_gains_is_kept_and_further_ideas_stand_on_it() -> None:
    def answer(text: str, args: list[str]) -> dict[str, Any]:
        return {"speedup": (1.4 if "-O3" in args else 1.0) * (2.0 if swapped(text) else 1.0)}

    world = World(answer)
    log = run(world, statement())
    found = answer_of(log)
    assert swapped(found["final_code"]["sweep"])
    assert "-O3" in found["compile_args"]
    assert {"loop-order", "optimise"} <= set(log[-1].data["rules"])
    assert "2.800" in found["explanation"]
    assert "speedup of 2.800 for candidate c2" in found["explanation"]


def test_a_gain_within_noise_is_no_gain() -> None:
    quiet = World(lambda text, args: {"speedup": 1.03, "noise": 0.01})
    noisy = World(lambda text, args: {"speedup": 1.03, "noise": 0.05})
    assert answer_of(run(quiet, statement()))["final_code"] != "original"
    assert answer_of(run(noisy, statement()))["final_code"] == "original"
    assert answer_of(run(World(quiet.answer), statement(min_effect=0.05)))["final_code"] == "original"


def test_the_budget_holds_and_every_call_is_a_new_candidate() -> None:
    for budget in (1, 2, 4, 8, 20):
        world = World(gains())
        run(world, statement(max_calls=budget))
        assert len(world.asked) <= budget
        contents = [json.dumps([asked.get("code"), asked["compile_args"]]) for asked in world.asked]
        assert len(set(contents)) == len(contents)
        assert "[null, []]" not in contents, "the original is never benchmarked as a candidate"


def test_four_calls_find_the_best_of_flags_and_of_loop_order() -> None:
    world = World(
        lambda text, args: {"speedup": (1.3 if "-ffast-math" in args else 1) * (3 if swapped(text) else 1)},
    )
    found = answer_of(run(world, statement(max_calls=4)))
    assert swapped(found["final_code"]["sweep"])
    assert "-ffast-math" in found["compile_args"]


def test_the_same_world_gives_the_same_rollout() -> None:
    logs = [run(World(gains(O3=1.2, simd=1.3)), statement()) for _ in range(2)]
    assert logs[0] == logs[1]


def test_a_rollout_goes_on_from_any_prefix_of_its_messages() -> None:
    whole = run(World(gains(O3=1.2, restrict=1.1, simd=1.3)), statement())
    for length in range(2, len(whole)):
        log = run_on(whole, length)
        assert log == whole


def run_on(whole: Sequence[Message], length: int) -> list[Message]:
    """Cut a rollout after `length` messages and let it go on, its tool answering as before."""
    log = list(whole[:length])
    while log[-1].role == "tool" or log[-1].role == "user" or log[-1].tool_calls:
        if log[-1].tool_calls:
            log.append(whole[len(log)])
            continue
        log.append(asyncio.run(RulesPolicy().next(tuple(log), (BENCHMARK,))))
    return log


def test_a_call_whose_result_was_lost_is_made_again() -> None:
    whole = run(World(gains()), statement())
    again = asyncio.run(RulesPolicy().next(tuple(whole[:5]), (BENCHMARK,)))
    assert whole[4].tool_calls
    assert again.tool_calls[0].arguments == whole[4].tool_calls[0].arguments


def test_a_rule_that_breaks_the_build_is_dropped_and_the_others_stay() -> None:
    def answer(text: str, args: list[str]) -> dict[str, Any]:
        if "__restrict__" in text:
            return {"outcome": "build_failed", "reason": "sweep.cpp:2: error: expected ','"}
        return {"speedup": (1.2 if "(s * s)" in text else 1.0) * (1.3 if "-O3" in args else 1.0)}

    world = World(answer)
    found = answer_of(run(world, statement(max_calls=10)))
    assert "(s * s)" in found["final_code"]["sweep"]
    assert "__restrict__" not in found["final_code"]["sweep"]
    assert "-O3" in found["compile_args"]


def test_a_flag_that_a_refusal_names_is_dropped_at_once() -> None:
    def answer(text: str, args: list[str]) -> dict[str, Any]:
        if "-march=native" in args:
            return {"outcome": "refused", "reason": "the argument '-march=native' is not allowed"}
        return {"speedup": 1.5 if "(s * s)" in text else 1.0}

    world = World(answer)
    found = answer_of(run(world, statement()))
    assert "-march=native" in world.asked[0]["compile_args"]
    assert "-march=native" not in world.asked[1]["compile_args"]
    assert "(s * s)" in world.asked[1]["code"]["sweep"], "the code went in again without the flag"
    assert "(s * s)" in found["final_code"]["sweep"]


def test_wrong_results_of_fast_math_lead_to_its_weaker_form() -> None:
    def answer(text: str, args: list[str]) -> dict[str, Any]:
        if "-ffast-math" in args:
            return {"outcome": "wrong_result", "reason": "residual differs"}
        return {"speedup": 1.4 if "-fassociative-math" in args else 1.0}

    found = answer_of(run(World(answer), statement(max_calls=12)))
    assert "-fassociative-math" in found["compile_args"]


def test_the_weaker_form_is_not_tried_where_the_stronger_one_was_correct() -> None:
    world = World(gains())
    run(world, statement(max_calls=30))
    assert any("-ffast-math" in asked["compile_args"] for asked in world.asked)
    assert not any("-fassociative-math" in asked["compile_args"] for asked in world.asked)


def test_forbidden_flags_are_never_tried() -> None:
    world = World(gains())
    run(world, statement(forbid_flags=["-ffast-math"], max_calls=30))
    assert not any("-ffast-math" in asked["compile_args"] for asked in world.asked)


def test_tunables_are_tried_value_by_value() -> None:
    world = World(lambda text, args: {"speedup": 1.5 if "-DTILE=16" in args else 1.0})
    found = answer_of(run(world, statement(tunables={"TILE": [8, 16, 32]}, max_calls=12)))
    assert found["compile_args"] == ["-DTILE=16"] or "-DTILE=16" in found["compile_args"]
    assert all(sum("TILE" in flag for flag in asked["compile_args"]) <= 1 for asked in world.asked)


def test_everything_failing_ends_with_the_original() -> None:
    log = run(World(lambda text, args: {"outcome": "crashed", "reason": "signal 11"}), statement(max_calls=30))
    assert answer_of(log)["final_code"] == "original"


def test_the_compiler_is_asked_once_and_rules_ideas_out() -> None:
    told, untold = World(gains(), report={"missed": []}), World(gains(), report={"missed": [{"line": 3}]})
    for world in (told, untold):
        run(world, statement(max_calls=30), (BENCHMARK, ANALYSIS))
        assert world.analysed == 1
    assert not any("omp simd" in asked.get("code", {}).get("sweep", "") for asked in told.asked)
    assert any("omp simd" in asked.get("code", {}).get("sweep", "") for asked in untold.asked)


def test_registers_decide_on_register_caps() -> None:
    text = "__global__ void k(float *a) { a[threadIdx.x] = 1; }\nvoid r(float *a) { k<<<1, 64>>>(a); }\n"
    kernel = text.split("\n")[0]
    first = statement(
        language="cuda", files={"k.cu": text}, flags=[], max_calls=30,
        regions={"sweep": {"file": "k.cu", "first_line": 1, "last_line": 1, "text": kernel}},
    )  # fmt: skip
    caps = {}
    for registers in (24, 80):
        world = World(gains(), report={"kernels": [{"resources": {"registers": registers, "spill_store_bytes": 0}}]})
        run(world, first, (BENCHMARK, ANALYSIS))
        caps[registers] = sorted(arg for asked in world.asked for arg in asked["compile_args"] if "maxrreg" in arg)
    assert caps[24] == []
    assert caps[80] == ["-maxrregcount=32", "-maxrregcount=40", "-maxrregcount=64"]


def test_a_call_that_was_not_run_ends_the_search() -> None:
    log = run(World(gains(O3=1.5)), statement())[:6]
    refused = Message("tool", "", tool_call_id=log[-2].tool_calls[0].id, ok=False, data={"not_run": "time_limit"})
    last = asyncio.run(RulesPolicy().next((*log[:-1], refused), (BENCHMARK,)))
    assert not last.tool_calls
    assert "-O3" in json.loads(last.content)["compile_args"]


def test_without_its_tool_the_original_comes_back() -> None:
    last = asyncio.run(RulesPolicy().next((statement(),), ()))
    assert json.loads(last.content)["final_code"] == "original"


def test_two_regions_of_one_file_are_rewritten_together() -> None:
    text = "void f(int *a, int *b) {\n  a[0] = b[0];\n}\n\nvoid g(int *a, int *b) {\n  a[1] = b[1];\n}\n"
    parts = {"f": (1, text.split("\n\n")[0]), "g": (5, text.split("\n\n")[1].rstrip("\n"))}
    regions = {name: {"file": "x.cpp", "first_line": line, "last_line": line + 2, "text": part}
               for name, (line, part) in parts.items()}  # fmt: skip
    world = World(lambda *_: {"speedup": 1.5})
    run(world, statement(regions=regions, files={"x.cpp": text}))
    assert world.asked[0]["code"] == {
        name: part.replace("*", "*__restrict__ ") for name, (_, part) in parts.items()}  # fmt: skip


def test_the_explanation_says_which_rules_and_why() -> None:
    log = run(World(gains(O3=1.5)), statement())
    text = answer_of(log)["explanation"]
    assert "restrict: without it every store may change" in text
    assert "It assumes that callers outside the file pass memory that does not overlap." in text
    assert "1.500" in text
