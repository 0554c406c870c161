"""A person's yes or no: every generated piece is asked about once, before it is compiled, and a no is told to the policy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from app import FASTER, SMOOTH, WRONG
from kernelwright import runner
from kernelwright.approval import (
    Answer,
    Approval,
    Piece,
    ScriptedPerson,
    candidate_piece,
    decisions_from,
    microbenchmark_piece,
)
from kernelwright.policy.scripted import Scripted
from kernelwright.pool.local import LocalPool
from kernelwright.runner import Options, Watcher
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.store import Store
from kernelwright.task_file import load_task
from kernelwright.toolbox import Tool, Toolbox, ToolResult
from kernelwright.trace import Candidate, Message, ToolCall

YES, NO = Answer(True), Answer(False, "it reads past the end")
PROGRAM = """\
#include "kw_bench.hpp"
int main() { return 0; }
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "runs.sqlite3") as opened:
        yield opened


def call(number: int, tool: str, **arguments: Any) -> Message:
    return Message("assistant", "", (ToolCall(f"b{number}", tool, arguments),))


def optimized(
    app: Path, store: Store, replies: list[Message | str], *answers: Answer
) -> tuple[dict[str, Any], list[Message], ScriptedPerson]:
    """The result, what tools answered, and the person with what was asked."""
    person, options = ScriptedPerson(answers), Options("scripted", approve=True)
    run = store.create_run("optimize", str(app), runner.options_json(options))
    approval = Approval(person)

    async def work() -> dict[str, Any]:
        async with LocalPool(open_sandbox(), approval=approval) as pool:
            return await runner.optimize(
                load_task(app), pool, Scripted(replies), options, store, run, Watcher(), approval
            )

    result = asyncio.run(work())
    return result, [message for message in store.messages(run.id, 0) if message.role == "tool"], person


def test_what_was_approved_is_analysed_and_proven_without_a_second_question(app: Path, store: Store) -> None:
    replies: list[Message | str] = [
        call(1, "compiler_analysis"),
        call(2, "benchmark_code", code={"smooth": FASTER}, compile_args=["-O2"]),
        call(3, "compiler_analysis", candidate="c1"),
        json.dumps({"final_code": "c1", "explanation": "", "compile_args": []}),
    ]
    result, said, person = optimized(app, store, replies, YES)
    assert [message.ok for message in said] == [True, True, True]
    assert (result["comparison"], result["provenance"]["approval"]) == ("faster", True)
    assert result["gain"]["flags"] is not None, "the arguments alone were timed: they are a part of what was approved"
    [(piece, purpose)] = person.asked
    assert (purpose, piece.compile_args, piece.texts) == ("benchmark_code", ("-O2",), {"smooth": FASTER.rstrip()})


def test_what_was_refused_is_never_built_and_the_policy_is_told_why(app: Path, store: Store) -> None:
    answer = json.dumps({"final_code": FASTER, "explanation": "", "compile_args": []})
    result, [said], person = optimized(
        app, store, [call(1, "benchmark_code", code={"smooth": FASTER}), answer, answer], NO
    )
    assert said.content == "c1: refused\na person refused this code: it reads past the end"
    assert (result["outcome"], result["reason"]) == ("refused", "a person refused this code: it reads past the end")
    assert (result["patch"], len(person.asked)) == (None, 1)


def test_an_answer_that_was_never_benchmarked_is_asked_about_before_its_proof(app: Path, store: Store) -> None:
    answer = json.dumps({"final_code": WRONG, "explanation": "", "compile_args": []})
    result, _, person = optimized(app, store, [answer, answer], YES)
    assert (result["outcome"], [purpose for _, purpose in person.asked]) == ("wrong_result", ["the proof"])


def test_compiling_alone_and_programs_of_the_policy_s_own_are_asked_about_too(app: Path, store: Store) -> None:
    replies: list[Message | str] = [
        call(1, "compiler_analysis", code={"smooth": FASTER}),
        call(2, "compiler_analysis", compile_args=["-O3"]),
        call(3, "microbench_code", code=PROGRAM, compile_args=["-O3"]),
        call(4, "benchmark_code", code={"smooth": "inline void smooth(const double* in"}),
        json.dumps({"final_code": "original", "explanation": "", "compile_args": []}),
    ]
    _, said, person = optimized(app, store, replies, NO, NO, Answer(False), NO)
    assert [message.content.splitlines()[-1] for message in said] == [
        "error: a person refused this code: it reads past the end",
        "error: a person refused this code: it reads past the end",
        "error: a person refused this code",
        "a person refused this code: it reads past the end",
    ]
    assert [purpose for _, purpose in person.asked] == [
        "compiler_analysis", "compiler_analysis", "microbench_code", "benchmark_code",
    ]  # fmt: skip
    assert person.asked[2][0].shown == (*PROGRAM.splitlines(), "")


def test_code_that_screening_refuses_is_not_worth_a_question(app: Path, store: Store) -> None:
    replies: list[Message | str] = [
        call(1, "benchmark_code", code={"smooth": SMOOTH.replace("double sum", "system(0); double sum")}),
        json.dumps({"final_code": "original", "explanation": "", "compile_args": []}),
    ]
    _, [said], person = optimized(app, store, replies)
    assert (said.data["outcome"], person.asked) == ("refused", [])


def test_a_candidate_is_shown_as_a_diff_with_the_file_s_own_line_numbers() -> None:
    before, after = b"one\r\ntwo\r\nthree\r\n", b"one\r\n++ two\r\nthree\r\n"
    piece = candidate_piece(Candidate({"r": "++ two"}), {"a.cpp": before}, {"a.cpp": after})
    assert piece.shown == (
        "--- a.cpp (original)", "+++ a.cpp (proposed)", "@@ -1,4 +1,4 @@", " one", "-two", "+++ two", " three", " ",
    )  # fmt: skip
    assert (piece.size, piece.new) == ("a.cpp: 1 line(s) added, 1 removed", "++ two")
    alone = candidate_piece(Candidate({}, ("-O3",)), {"a.cpp": before}, {"a.cpp": before})
    assert (alone.shown, alone.size) == ((), "the original's code, unchanged")


def test_a_run_that_goes_on_knows_what_was_decided() -> None:
    kept: list[dict[str, Any]] = []
    first = Approval(ScriptedPerson([YES, NO]), on_decision=kept.append)
    asyncio.run(first(microbenchmark_piece("int main() {}", ("-O2",)), "microbench_code"))
    asyncio.run(first(microbenchmark_piece("int main() {}", ()), "microbench_code"))
    decided = decisions_from(json.loads(json.dumps(kept[-1])))
    assert decided == first.decisions
    person = ScriptedPerson([YES])
    again = Approval(person, decided)
    assert asyncio.run(again(microbenchmark_piece("int main() {}", ("-O2",)), "")) is None
    assert asyncio.run(again(microbenchmark_piece("int main() {}", ()), "")) is not None
    assert person.asked == []
    assert asyncio.run(again(microbenchmark_piece("int main() { }", ()), "")) is None
    assert len(person.asked) == 1
    assert decisions_from(None) == []


def test_a_yes_covers_parts_of_what_was_shown_and_a_no_only_the_whole() -> None:
    def piece(texts: dict[str, str], *arguments: str) -> Piece:
        return candidate_piece(Candidate(texts, arguments), {}, {})

    person = ScriptedPerson([YES, NO, NO, YES])
    approval = Approval(person)
    for texts, arguments, refused in (
        ({"a": "1", "b": "2"}, ("-O3",), False),
        ({"a": "1"}, ("-O3",), False),
        ({"a": "1"}, ("-O2",), True),
        ({"a": "1", "b": "3"}, ("-O3",), True),
        ({"b": "3"}, ("-O3",), False),
    ):
        assert (asyncio.run(approval(piece(texts, *arguments), "")) is not None) == refused, (texts, arguments)
    assert [decision.approved for decision in approval.decisions] == [True, False, False, True]


def test_questions_of_concurrent_attempts_come_one_after_the_other() -> None:
    heard: list[str] = []

    class Slow:
        async def __call__(self, piece: Piece, purpose: str) -> Answer:
            heard.append(f"asked {purpose}")
            for _ in range(5):
                await asyncio.sleep(0)
            heard.append(f"answered {purpose}")
            return YES

    async def both() -> None:
        approval = Approval(Slow())
        same = microbenchmark_piece("int main() {}", ())
        other = microbenchmark_piece("int main() { return 0; }", ())
        await asyncio.gather(approval(same, "1"), approval(other, "2"), approval(same, "3"))

    asyncio.run(both())
    assert heard == ["asked 1", "answered 1", "asked 2", "answered 2"]


def test_the_time_that_a_person_takes_is_no_call_s_time() -> None:
    waited = [7.0]

    class Nothing(BaseModel):
        pass

    async def asked(_: Nothing) -> ToolResult:
        waited[0] += 100.0
        return ToolResult("")

    box = Toolbox([Tool("ask", "", Nothing, asked)], waited_s=lambda: waited[0])
    message = asyncio.run(box.call(ToolCall("1", "ask", {}), ""))
    assert message.elapsed_s < 0
