"""The six tools, over a real workshop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from app import FASTER, WRONG
from kernelwright.execute import Workshop
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.task_file import load_task
from kernelwright.toolbox import Toolbox
from kernelwright.tools import NAMES, Bench
from kernelwright.trace import Message, ToolCall
from kernelwright.trial import open_baseline

T = TypeVar("T")
Ask = Callable[..., Awaitable[Message]]


def with_tools(app: Path, work: Callable[[Ask], Awaitable[T]]) -> T:
    async def inside() -> T:
        task = load_task(app)
        async with Workshop(task, open_sandbox()) as shop:
            bench = Bench(await open_baseline(shop, task.shown, lambda _: None), random.Random(1), lambda _: None)
            box = Toolbox(bench.tools(), {"smooth": shop.spans["smooth"].text}, "cpp")

            async def ask(name: str, content: str = "", **arguments: Any) -> Message:
                return await box.call(ToolCall("1", name, arguments), content)

            return await work(ask)

    return asyncio.run(inside())


def test_benchmark_code_reports_what_became_of_a_candidate(app: Path) -> None:
    async def work(ask: Ask) -> list[Message]:
        return [
            await ask("benchmark_code", code={"smooth": FASTER}),
            await ask("benchmark_code", code={"smooth": WRONG}),
            await ask("benchmark_code", code={"smooth": "inline void smooth(const double*, double*, int) { oops(); }"}),
            await ask("benchmark_code", compile_args=["-O3", "-o", "/etc/passwd"]),
            await ask("benchmark_code", f"like this:\n```cpp\n{FASTER}```\n", compile_args="-O3"),
            await ask("benchmark_code", code={"rough": ""}),
            await ask("benchmark_code"),
            await ask("benchmark_code", candidate="c1", compile_args=["-O2"]),
        ]

    found = with_tools(app, work)
    assert [message.data.get("outcome") for message in found] == [
        "correct",
        "wrong_result",
        "build_failed",
        "refused",
        "correct",
        None,
        None,
        "correct",
    ]
    assert [message.data.get("candidate") for message in found] == ["c1", "c2", "c3", "c4", "c5", None, None, "c6"]
    assert "the original, whose time you have" in found[6].content
    assert found[7].data["code"] == found[0].data["code"]
    assert found[0].data["speedup"] > 1
    assert "speedup" in found[0].content
    assert "oops" in found[2].content
    assert found[4].data["compile_args"] == ["-O3"]
    assert found[4].data["code"]["smooth"].strip() == FASTER.strip()
    assert not found[5].ok


def test_nothing_of_the_grader_is_in_reach(app: Path) -> None:
    """The task file, held-out runs, hidden paths and version control are not in the repository that tools see."""
    (app / ".git").mkdir()
    (app / ".git/secret").write_text("held_out")
    (app / "answers").mkdir()
    (app / "answers/a.txt").write_text("smooth")
    file = app / "kernelwright.toml"
    file.write_text(file.read_text().replace('language = "cpp"', 'language = "cpp"\nhidden = ["answers"]'))
    (app / "link").symlink_to("/etc")

    async def work(ask: Ask) -> list[Message]:
        return [
            await ask("list_dir"),
            await ask("search", pattern="held_out"),
            await ask("file_viewer", path="kernelwright.toml"),
            await ask("file_viewer", path="answers/a.txt"),
            await ask("file_viewer", path="../../etc/passwd"),
            await ask("file_viewer", path="link/passwd"),
            await ask("list_dir", path="/"),
        ]

    listing, search, *refused, root = with_tools(app, work)
    assert listing.content.splitlines()[-1].startswith("Makefile")
    assert all(name not in listing.content for name in ("kernelwright", "answers", ".git", "link"))
    assert search.content == "no hit"
    assert all(message.ok is False for message in refused)
    assert root.content == listing.content


def test_files_are_shown_numbered_and_in_parts(app: Path) -> None:
    async def work(ask: Ask) -> list[Message]:
        return [
            await ask("file_viewer", path="src/smooth.hpp", first_line=2, last_line=3),
            await ask("file_viewer", path="src/smooth.hpp", first_line=99),
            await ask("search", pattern=r"sum \+?= ", regex=True),
            await ask("search", pattern="(", regex=True),
            await ask("list_dir", path="src"),
        ]

    view, beyond, search, broken, listing = with_tools(app, work)
    assert view.content.startswith("    2 inline void smooth(")
    assert "(lines 2 to 3 of 11)" in view.content
    assert "has 11 lines" in beyond.content
    assert "src/smooth.hpp:4: double sum = 0.0;" in search.content
    assert "missing closing parenthesis" in broken.content
    assert [line.split()[0] for line in listing.content.splitlines()] == [
        "checks.cpp",
        "checks.hpp",
        "main.cpp",
        "smooth.hpp",
    ]


def test_a_pattern_that_takes_for_ever_costs_seconds_and_no_more(app: Path) -> None:
    (app / "src/long.txt").write_text("a" * 4000 + "b\n")

    async def work(ask: Ask) -> Message:
        return await ask("search", pattern="(a+)+$", regex=True)

    found = with_tools(app, work)
    assert not found.ok
    assert "failed" in found.content


def test_the_compiler_says_what_it_makes_of_a_region(app: Path) -> None:
    async def work(ask: Ask) -> list[Message]:
        return [
            await ask("compiler_analysis"),
            await ask("compiler_analysis", code={"smooth": FASTER}, compile_args=["-O3"]),
            await ask("compiler_analysis", candidate="c9"),
        ]

    plain, better, unknown = with_tools(app, work)
    assert plain.ok
    assert better.ok
    assert plain.data["instructions"] != better.data["instructions"]
    assert better.data["vectorized"]
    assert "there is no candidate 'c9'" in unknown.content


MICRO = """#include "timing.hpp"
#include <cmath>
int main() {
  double x = 2.0;
  KW_BENCH("pow", 0, { kw::keep(x); double y = std::pow(x, 2.0); kw::keep(y); });
  KW_BENCH("mul", 0, { kw::keep(x); double y = x * x; kw::keep(y); });
}
"""


def test_a_microbenchmark_times_its_variants(app: Path) -> None:
    async def work(ask: Ask) -> list[Message]:
        return [
            await ask("microbench_code", code=MICRO),
            await ask("microbench_code", code="int main() { return 1; }"),
            await ask("microbench_code", code="int main() { oops }"),
        ]

    times, silent, broken = with_tools(app, work)
    assert [variant["name"] for variant in times.data["variants"]] == ["pow", "mul"]
    assert all(variant["median_s"] > 0 for variant in times.data["variants"])
    assert "no times were printed (exit code 1" in silent.content
    assert "oops" in broken.content
    assert broken.ok is False


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_says_what_it_takes_and_returns(app: Path, name: str) -> None:
    bench = Bench.__new__(Bench)
    bench.baseline = type("B", (), {"task": load_task(app)})()
    (tool,) = bench.tools([name])
    assert tool.name == name
    assert "eturn" in tool.description or name in ("file_viewer", "list_dir", "compiler_analysis")
    assert all(field.description for field in tool.arguments.model_fields.values())
