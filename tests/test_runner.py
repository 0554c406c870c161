"""A whole optimisation: rollouts over real tools, then the verifier; kept, resumed, and reported as it was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app import FASTER, SLOWER, WRONG
from kernelwright import runner
from kernelwright.policy.scripted import Scripted
from kernelwright.pool.local import LocalPool
from kernelwright.runner import Options, Watcher
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.store import Run, Store
from kernelwright.task_file import load_task
from kernelwright.trace import Message, ToolCall


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "runs.sqlite3") as opened:
        yield opened


def benchmark(number: int, text: str, flags: tuple[str, ...] = ()) -> Message:
    arguments = {"code": {"smooth": text}, "compile_args": list(flags)}
    return Message("assistant", "", (ToolCall(f"b{number}", "benchmark_code", arguments),))


def answer(code: str, flags: tuple[str, ...] = ()) -> str:
    return json.dumps({"final_code": code, "explanation": "The weights are tabulated.", "compile_args": list(flags)})


def begun(store: Store, app: Path, options: Options) -> Run:
    return store.create_run("optimize", str(app), runner.options_json(options))


def optimize(
    app: Path, store: Store, replies: list[Message | str], attempts: int = 1, run: Run | None = None
) -> dict[str, Any]:
    options = Options("scripted", attempts)
    run = run or begun(store, app, options)
    return asyncio.run(on_a_pool(load_task(app), Scripted(replies), options, store, run, Watcher()))


async def on_a_pool(*arguments: Any) -> dict[str, Any]:
    """`runner.optimize` with a pool of its own, its second argument."""
    task, *others = arguments
    async with LocalPool(open_sandbox()) as pool:
        return await runner.optimize(task, pool, *others)


def test_the_best_benchmarked_answer_is_proven_and_becomes_a_patch(app: Path, store: Store) -> None:
    result = optimize(app, store, [benchmark(1, SLOWER), benchmark(2, FASTER, ("-O2",)), answer("c2")])
    assert (result["outcome"], result["comparison"]) == ("correct", "faster")
    assert result["speedup"] > 1
    assert "double weight[17];" in result["patch"]
    assert result["candidate"]["compile_args"] == ["-O2"]
    assert result["gain"]["code"] * result["gain"]["flags"] == pytest.approx(result["speedup"])
    assert result["flags_hint"] == "compile src/main.cpp with -O1 -O2"
    assert "Measured by benchmark_code (c2)" in result["candidate"]["explanation"]
    assert [message.role for message in store.messages(result["run"], 0)] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert store.result(result["run"], "optimize") == result


def test_nothing_found_is_the_original_as_fast_as_itself(app: Path, store: Store) -> None:
    result = optimize(app, store, [benchmark(1, WRONG), answer("original")])
    assert (result["outcome"], result["comparison"], result["speedup"]) == ("correct", "same", 1.0)
    assert result["patch"] is None


def test_an_answer_that_is_wrong_is_never_a_patch(app: Path, store: Store) -> None:
    result = optimize(app, store, [answer(WRONG)] * 2)
    assert (result["outcome"], result["speedup"], result["patch"]) == ("wrong_result", None, None)


def test_an_answer_that_was_never_benchmarked_is_judged_all_the_same(app: Path, store: Store) -> None:
    said = f"```cpp\n{FASTER}```\n" + json.dumps({"explanation": "", "compile_args": []})
    result = optimize(app, store, [said, said])
    assert result["comparison"] == "faster"


def test_a_run_that_was_cut_off_goes_on_from_its_last_message(app: Path, store: Store) -> None:
    run = begun(store, app, Options("scripted"))
    replies: list[Message | str] = [benchmark(1, WRONG), benchmark(2, FASTER), answer("c2")]

    class CutOff(Exception):
        pass

    def cut(_attempt: int, message: Message) -> None:
        if message.role == "tool":
            raise CutOff

    options = Options("scripted")
    with pytest.raises(CutOff):
        asyncio.run(on_a_pool(load_task(app), Scripted(replies), options, store, run, Watcher(on_message=cut)))
    assert len(store.messages(run.id, 0)) == 4
    result = optimize(app, store, replies, run=run)
    assert result["comparison"] == "faster"
    outcomes = [message.data["outcome"] for message in store.messages(run.id, 0) if message.role == "tool"]
    assert outcomes == ["wrong_result", "correct"]


def test_attempts_that_ended_are_not_made_again(app: Path, store: Store) -> None:
    first = optimize(app, store, [answer("original")] * 2)
    again = optimize(app, store, [], run=store.find(first["run"]))
    assert replace(store.find(first["run"])).status == "done"
    assert again["attempts"] == first["attempts"]


def test_the_briefing_names_nothing_of_the_grader(app: Path, store: Store) -> None:
    result = optimize(app, store, [answer("original")] * 2)
    first = json.dumps([message.to_json() for message in store.messages(result["run"], 0)[:2]])
    assert "3001" not in first
    assert "held_out" not in first
    assert "kernelwright.toml" not in first
    assert str(app) not in first


def test_where_the_answer_is_wrong_the_next_best_benchmarked_candidate_is_proven(app: Path, store: Store) -> None:
    """The shown run does not see what is wrong with the answer; a held-out one does."""
    trap = FASTER.replace("  double weight", "  if (n == 3001) { out[0] = 1; return; }\n  double weight")
    result = optimize(app, store, [benchmark(1, FASTER), benchmark(2, trap), answer("c2")])
    assert (result["outcome"], result["comparison"]) == ("correct", "faster")
    assert result["candidate"]["final_code"]["smooth"].strip() == FASTER.strip()
    assert "did not answer with" in result["candidate"]["explanation"]
    assert "Measured by benchmark_code (c1)" in result["candidate"]["explanation"]
    assert store.verdicts(result["run"])[0]["outcome"] == "wrong_result"
