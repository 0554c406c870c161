"""Builds and runs of real programs in the real sandbox: what is rebuilt, what is reused, what is put back."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from app import FASTER, SMOOTH, WRONG, make_app
from kernelwright.commands import words
from kernelwright.errors import CandidateError, TaskError
from kernelwright.execute import BuildFailure, Built, Workshop, failure_of
from kernelwright.outcome import Outcome
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.state import state_home
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate
from kernelwright.trial import open_baseline

T = TypeVar("T")


def in_workshop(app: Path, work: Callable[[Workshop], Awaitable[T]]) -> T:
    async def inside() -> T:
        async with Workshop(load_task(app), open_sandbox()) as shop:
            return await work(shop)

    return asyncio.run(inside())


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


async def built_as(shop: Workshop, *code: str, flags: tuple[str, ...] = ()) -> Built:
    built = await shop.build(Candidate({"smooth": code[0]} if code else {}, flags))
    assert isinstance(built, Built), built.log
    return built


def actions(built: Built) -> dict[str, str]:
    return {command.sources[0] if command.sources else "link": command.action for command in built.commands}


def test_only_the_units_that_read_the_region_are_compiled_again(app: Path) -> None:
    async def work(shop: Workshop) -> None:
        await shop.build_baseline()
        built = await built_as(shop, FASTER)
        assert actions(built) == {"src/main.cpp": "a", "src/checks.cpp": "r", "link": "c"}

    in_workshop(app, work)


def test_a_region_in_a_header_that_make_does_not_know_is_never_stale(app: Path) -> None:
    """Make sees no reason to build main.o again, the tree holds one from before, and the candidate is built all the same."""
    subprocess.run(["make", "-s", "-C", str(app)], check=True)

    async def work(shop: Workshop) -> None:
        baseline = await shop.build_baseline()
        candidate = await built_as(shop, WRONG)
        assert candidate.artifact != baseline.artifact
        first = await shop.run(baseline, shop.task.shown[0])
        second = await shop.run(candidate, shop.task.shown[0])
        assert first.files["field.txt"] != second.files["field.txt"]

    in_workshop(app, work)


def test_compile_arguments_reach_the_region_s_units_alone(app: Path) -> None:
    async def work(shop: Workshop) -> None:
        await shop.build_baseline()
        built = await built_as(shop, flags=("-O3", "-ffp-contract=fast"))
        asked = {command.sources[0]: command.argv for command in built.commands if command.sources}
        assert asked["src/main.cpp"][-2:] == ("-O3", "-ffp-contract=fast")
        assert "-O3" not in asked["src/checks.cpp"]
        assert actions(built)["src/checks.cpp"] == "r"

    in_workshop(app, work)


def test_flags_without_a_place_are_put_in_by_the_interposed_compiler(app: Path) -> None:
    edit(app / "kernelwright.toml", 'make EXTRA_CFLAGS={flags}"', 'make"')

    async def work(shop: Workshop) -> None:
        baseline = await shop.build_baseline()
        asked = {command.sources[0]: command.argv for command in baseline.commands if command.sources}
        assert asked["src/main.cpp"][-1] == "-O1"
        built = await built_as(shop, flags=("-O2",))
        again = {command.sources[0]: command.argv for command in built.commands if command.sources}
        assert again["src/main.cpp"][-2:] == ("-O1", "-O2")

    in_workshop(app, work)


def test_a_build_that_calls_its_compiler_by_path_is_built_whole_and_says_so(app: Path) -> None:
    edit(app / "Makefile", "CXX = g++", "CXX = /usr/bin/g++")

    async def work(shop: Workshop) -> None:
        await shop.build_baseline()
        assert "saw no command that reads src/smooth.hpp" in shop.notes[0]
        built = await built_as(shop, WRONG, flags=("-O2",))
        assert "-O1 -O2" in built.log

    in_workshop(app, work)


def test_a_build_that_does_not_compile_the_region_at_all_is_refused(app: Path) -> None:
    edit(app / "Makefile", "CXX = g++", "CXX = /usr/bin/g++")
    edit(app / "src/main.cpp", '#include "smooth.hpp"', SMOOTH)

    async def work(shop: Workshop) -> None:
        with pytest.raises(TaskError, match="is not what gets compiled"):
            await shop.build_baseline()

    in_workshop(app, work)


def test_cmake_is_configured_once_and_seen_through(app: Path) -> None:
    (app / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(app CXX)\nadd_executable(app src/main.cpp src/checks.cpp)\n"
    )
    (app / "Makefile").unlink()
    edit(
        app / "kernelwright.toml",
        'command = "make EXTRA_CFLAGS={flags}"\nartifact = "app"',
        'configure = "cmake -S . -B out"\ncommand = "cmake --build out -j{jobs}"\nartifact = "out/app"',
    )
    edit(app / "kernelwright.toml", "./app 20000", "out/app 20000")

    async def work(shop: Workshop) -> None:
        baseline = await shop.build_baseline()
        candidate = await built_as(shop, WRONG)
        assert candidate.artifact != baseline.artifact
        assert sorted(command.action for command in candidate.commands) == ["a", "c", "r"]
        assert (await shop.run(candidate, shop.task.shown[0])).job.exit_code == 0

    in_workshop(app, work)


def test_every_run_starts_from_the_same_files(app: Path) -> None:
    edit(
        app / "src/main.cpp",
        "  return 0;",
        '  FILE* cache = fopen("cache", "r");\n  if (cache) puts("cached");\n'
        '  fclose(fopen("cache", "w"));\n  fclose(fopen("src/main.cpp", "w"));\n  return 0;',
    )

    async def work(shop: Workshop) -> None:
        baseline = await shop.build_baseline()
        for _ in range(2):
            result = await shop.run(baseline, shop.task.shown[0])
            assert "PASS" in result.text
            assert "cached" not in result.text
        assert (baseline.slot.folder / "src/main.cpp").read_text() == (app / "src/main.cpp").read_text()

    in_workshop(app, work)


def test_a_candidate_that_does_not_compile_is_a_result_with_the_compiler_s_words(app: Path) -> None:
    async def work(shop: Workshop) -> None:
        await shop.build_baseline()
        failed = await shop.build(Candidate({"smooth": "inline void smooth(int) { oops }"}))
        assert isinstance(failed, BuildFailure)
        assert failed.outcome is Outcome.BUILD_FAILED
        assert "oops" in failed.log
        assert isinstance(await shop.build(Candidate({"smooth": FASTER})), Built)

    in_workshop(app, work)


def test_a_candidate_for_a_region_that_is_not_there_is_a_mistake(app: Path) -> None:
    async def work(shop: Workshop) -> None:
        await shop.build_baseline()
        with pytest.raises(CandidateError, match="no region 'rough'"):
            await shop.build(Candidate({"rough": ""}))

    in_workshop(app, work)


def test_a_run_that_does_not_end_is_stopped(app: Path) -> None:
    edit(app / "kernelwright.toml", "timeout_s = 20", "timeout_s = 1")

    async def work(shop: Workshop) -> None:
        await shop.build_baseline()
        built = await built_as(shop, SMOOTH.replace("double sum = 0.0;", "double sum = 0.0;\n    while (in) {}"))
        result = await shop.run(built, shop.task.shown[0])
        assert failure_of(result, 1.0) == (Outcome.TIMED_OUT, "run 'small' passed 1 s")

    in_workshop(app, work)


def test_code_that_does_not_build_unmodified_is_the_user_s_to_mend(app: Path) -> None:
    edit(app / "src/main.cpp", "int main", "int mian(")

    async def work(shop: Workshop) -> None:
        with pytest.raises(TaskError, match=r"the unmodified code does not build: .*error"):
            await shop.build_baseline()

    in_workshop(app, work)


def test_a_repository_with_odd_names_is_built_and_run(tmp_path: Path) -> None:
    app = make_app(tmp_path / "meine größe ✓")
    (app / "src/smooth.hpp").write_bytes((app / "src/smooth.hpp").read_bytes().replace(b"\n", b"\r\n"))

    async def work(shop: Workshop) -> None:
        await shop.build_baseline()
        assert "\r" not in shop.spans["smooth"].text
        built = await built_as(shop, FASTER)
        text = (built.slot.folder / "src/smooth.hpp").read_bytes()
        assert text.count(b"\r\n") == text.count(b"\n")

    in_workshop(app, work)


def test_nothing_is_left_when_a_workshop_closes(app: Path) -> None:
    async def work(shop: Workshop) -> Path:
        await shop.build_baseline()
        return shop.folder

    folder = in_workshop(app, work)
    assert not folder.exists()
    assert folder.parent == state_home() / "work"


def test_macros_of_a_header_are_expanded_in_the_region(app: Path) -> None:
    (app / "src/body.hpp").write_text("#define BODY(X) double sum = 0.0; X\n#define TAIL out[i] = sum\n")
    edit(app / "src/smooth.hpp", "#pragma once\n", '#pragma once\n#include "body.hpp"\n')
    edit(app / "src/smooth.hpp", "    double sum = 0.0;\n", "    BODY(int j;)\n")
    edit(app / "src/smooth.hpp", "      int j = (", "      j = (")
    edit(app / "src/smooth.hpp", "    out[i] = sum;", "    TAIL;")
    edit(app / "kernelwright.toml", 'kernel = "smooth"', 'kernel = "smooth"\nexpand_macros = ["src/body.hpp"]')

    async def work(shop: Workshop) -> str:
        baseline = await open_baseline(shop, shop.task.shown, lambda _: None)
        assert "PASS" in baseline.results["small"].text
        return shop.spans["smooth"].text

    text = in_workshop(app, work)
    assert "BODY" not in text
    assert "out[i] = sum;" in text


def test_placeholders_are_filled_word_by_word() -> None:
    assert words("make -j{jobs} {flags} 'X={flags}' A={arch_number} {other}", "sm_90a", ("-O1", "-g"))[1:] == [
        words("-j{jobs}", "sm_90", ())[0][:],
        "-O1",
        "-g",
        "X=-O1 -g",
        "A=90a",
        "{other}",
    ]
