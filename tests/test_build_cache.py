"""Equal builds are made once; what differs in anything is built anew."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from app import FASTER
from kernelwright import build_cache
from kernelwright.execute import BuildFailure, Built, Workshop
from kernelwright.sandbox import Job, JobResult
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.task_file import load_task
from kernelwright.toolbox import ToolResult
from kernelwright.tools import AnalysisArguments, Bench
from kernelwright.trace import Candidate
from kernelwright.trial import open_baseline

pytestmark = pytest.mark.usefixtures("home")
T = TypeVar("T")


def in_a_workshop(app: Path, use: Callable[[Workshop], Awaitable[T]], *, spawned: list[Job] | None = None) -> T:
    """`use` in a new workshop whose original is built; `spawned` gets every job from then on."""

    async def work() -> T:
        async with Workshop(load_task(app), open_sandbox()) as shop:
            await shop.build_baseline()
            if spawned is not None:
                plain = shop._spawn

                async def counted(job: Job) -> JobResult:
                    spawned.append(job)
                    return await plain(job)

                shop._spawn = counted  # type: ignore[method-assign]
            return await use(shop)

    return asyncio.run(work())


async def said(shop: Workshop, candidate: Candidate) -> tuple[str, str]:
    """The program's hash, and what its first run printed without its times."""
    built = await shop.build(candidate)
    assert isinstance(built, Built)
    result = await shop.run(built, shop.task.shown[0])
    return built.artifact, "\n".join(line for line in result.text.splitlines() if " ms" not in line)


FAST = Candidate({"smooth": FASTER}, ("-O2",))


def test_a_build_that_was_made_before_is_not_made_again_and_runs_alike(app: Path) -> None:
    first = in_a_workshop(app, lambda shop: said(shop, FAST))
    spawned: list[Job] = []
    assert in_a_workshop(app, lambda shop: said(shop, FAST), spawned=spawned) == first
    assert len(spawned) == 1, "only the run"


def test_the_compilers_no_is_remembered_with_its_words(app: Path) -> None:
    async def failed(shop: Workshop) -> str:
        made = await shop.build(Candidate({"smooth": FASTER.replace("double", "duble", 1)}))
        assert isinstance(made, BuildFailure)
        return made.log

    first = in_a_workshop(app, failed)
    spawned: list[Job] = []
    assert in_a_workshop(app, failed, spawned=spawned) == first
    assert "duble" in first
    assert spawned == []


def test_a_report_that_was_made_before_is_told_again(app: Path) -> None:
    async def analysed(shop: Workshop) -> ToolResult:
        baseline = await open_baseline(shop, shop.task.shown, lambda _: None)
        bench = Bench(baseline, random.Random(0), lambda _: None)
        return await bench.compiler_analysis(AnalysisArguments(code={"smooth": FASTER}, compile_args=["-O2"]))

    async def counted(shop: Workshop) -> tuple[ToolResult, int]:
        first = await analysed(shop)
        spawned.clear()
        again = await analysed(shop)
        assert again == first
        return again, sum("-fopt-info" in " ".join(job.argv) for job in spawned)

    spawned: list[Job] = []
    first, compiled = in_a_workshop(app, counted, spawned=spawned)
    assert first.data["instructions"]
    assert compiled == 0


@pytest.mark.parametrize(
    "other",
    [
        Candidate({"smooth": FASTER + "\n"}, ("-O2",)),
        Candidate({"smooth": FASTER}, ("-O3",)),
        Candidate({"smooth": FASTER}),
    ],
    ids=["text", "argument", "no argument"],
)
def test_what_differs_in_anything_is_built(app: Path, other: Candidate) -> None:
    async def build(shop: Workshop, candidate: Candidate) -> None:
        assert isinstance(await shop.build(candidate), Built)

    in_a_workshop(app, lambda shop: build(shop, FAST))
    spawned: list[Job] = []
    in_a_workshop(app, lambda shop: build(shop, other), spawned=spawned)
    assert len(spawned) == 1


def test_a_changed_file_of_the_repository_is_another_build(app: Path) -> None:
    async def build(shop: Workshop) -> None:
        assert isinstance(await shop.build(FAST), Built)

    in_a_workshop(app, build)
    source = app / "src" / "main.cpp"
    source.write_text(source.read_text() + "// a comment\n")
    spawned: list[Job] = []
    in_a_workshop(app, build, spawned=spawned)
    assert len(spawned) == 1


def test_another_place_of_the_same_region_is_another_build(app: Path) -> None:
    """The task file is no part of the repository: the same text in other lines is another program."""

    async def build(shop: Workshop) -> str:
        built = await shop.build(Candidate({"smooth": "// nothing here\n"}))
        return built.artifact if isinstance(built, Built) else built.log

    task = app / "kernelwright.toml"
    source = app / "src" / "smooth.hpp"
    source.write_text(source.read_text().rstrip("\n") + "\n// spare\n")
    last = len(source.read_text().splitlines())
    by_name = task.read_text()
    first = in_a_workshop(app, build)
    task.write_text(by_name.replace('kernel = "smooth"', f"lines = [{last}, {last}]"))
    assert "lines = [" in task.read_text()
    assert in_a_workshop(app, build) != first


def test_a_build_that_passed_a_limit_is_made_again(app: Path) -> None:
    async def under(shop: Workshop, memory_bytes: int) -> object:
        needs = shop.task.needs.model_copy(update={"memory_bytes": memory_bytes})
        shop.task = shop.task.model_copy(update={"needs": needs})
        return await shop.build(FAST)

    small = in_a_workshop(app, lambda shop: under(shop, 2**24))
    assert isinstance(small, BuildFailure)
    assert small.limit
    assert isinstance(in_a_workshop(app, lambda shop: under(shop, 2**32)), Built)


def test_a_damaged_file_is_no_build(app: Path) -> None:
    in_a_workshop(app, lambda shop: said(shop, FAST))
    for path in build_cache._folder().iterdir():
        path.write_bytes(path.read_bytes()[:700])
    spawned: list[Job] = []
    in_a_workshop(app, lambda shop: said(shop, FAST), spawned=spawned)
    assert len(spawned) == 2


def test_the_folder_stays_within_its_size_and_can_be_emptied(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def build(shop: Workshop) -> None:
        for level in ("-O1", "-O2", "-O3"):
            await shop.build(Candidate({}, (level,)))

    in_a_workshop(app, build)
    sizes = [path.stat().st_size for path in build_cache._folder().glob("*.tar")]
    monkeypatch.setattr(build_cache, "MOST_BYTES", int(1.5 * max(sizes)))
    in_a_workshop(app, lambda shop: said(shop, FAST))
    assert len(list(build_cache._folder().glob("*.tar"))) == 1
    assert build_cache.forget() == 1
