"""What the interposed compilers make of build systems as they are: files made by the build, options in every spelling,
words that change from build to build, workspaces that lie elsewhere. Real compilers in the real sandbox."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from app import FASTER, SMOOTH, WRONG
from kernelwright.by_hand import reproduce
from kernelwright.execute import BuildFailure, Built, Workshop
from kernelwright.measure import EVALUATE
from kernelwright.outcome import Outcome
from kernelwright.sandbox import Sandbox
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.sandbox.none import NoSandbox
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate
from kernelwright.verify import verify
from kernelwright.workspace import remove

T = TypeVar("T")
MAKEFILE = """\
app: src/main.o src/checks.o
\tg++ -o $@ $^
src/%.o: src/%.cpp
\tg++ -std=c++17 $(EXTRA_CFLAGS) -c -o $@ $<
"""
GENERATED = """\
app: src/main.cpp src/checks.cpp src/table.h
\tg++ -c -o src/main.o src/main.cpp
\tg++ -c -o src/checks.o src/checks.cpp
\tg++ -o $@ src/main.o src/checks.o
src/table.h: src/gen.cpp src/smooth.hpp
\tg++ -o gen src/gen.cpp
\t./gen > src/table.h
"""
GENERATOR = '#include <cstdio>\n#include "smooth.hpp"\nint main() { printf("#define TERMS %d\\n", terms()); }\n'
TERMS = "inline int terms() { return 8; }\n"
CMAKE = "cmake_minimum_required(VERSION 3.16)\nproject(app CXX)\nadd_executable(app src/main.cpp src/checks.cpp)\n"


def in_workshop(
    app: Path, work: Callable[[Workshop], Awaitable[T]], sandbox: Sandbox | None = None, keep: bool = False
) -> T:
    async def inside() -> T:
        async with Workshop(load_task(app), sandbox or open_sandbox(), keep) as shop:
            await shop.build_baseline()
            return await work(shop)

    return asyncio.run(inside())


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


async def built_as(shop: Workshop, code: str, *flags: str) -> Built:
    built = await shop.build(Candidate({next(iter(shop.spans)): code}, flags))
    assert isinstance(built, Built), built.log
    return built


def actions(built: Built) -> dict[str, str]:
    return {Path(command.sources[0]).name: command.action for command in built.commands if command.sources}


def with_generated_table(app: Path) -> Path:
    """`gen`, whose source reads the region, writes the committed src/table.h, which checks.cpp reads."""
    (app / "Makefile").write_text(GENERATED)
    (app / "src/gen.cpp").write_text(GENERATOR)
    (app / "src/table.h").write_text("#define TERMS 8\n")
    (app / "src/smooth.hpp").write_text(f"#pragma once\n{TERMS}{SMOOTH}")
    edit(app / "src/checks.cpp", '#include "checks.hpp"', '#include "checks.hpp"\n#include "table.h"')
    edit(app / "src/checks.cpp", "sum > 0.0", "sum > 0.0 && TERMS == 8")
    edit(app / "kernelwright.toml", 'kernel = "smooth"', 'kernel = "terms"')
    return app / "src/table.h"


def test_a_committed_file_that_the_build_rewrites_is_never_taken_for_unchanged(app: Path) -> None:
    table = with_generated_table(app)
    os.utime(table, (0, 0))

    async def work(shop: Workshop) -> None:
        built = await built_as(shop, TERMS.replace("8", "7"))
        assert actions(built) == {"gen.cpp": "a", "main.cpp": "a", "checks.cpp": "c"}
        assert "FAIL" in (await shop.run(built, shop.task.shown[0])).text
        assert shop.notes == []

    in_workshop(app, work)


def test_a_file_that_only_the_candidate_s_build_rewrites_ends_all_reuse(app: Path) -> None:
    """Make finds the committed table newer than the original region, and older than the candidate's."""
    table = with_generated_table(app)
    for file in app.rglob("*"):
        os.utime(file, (10, 10))
    os.utime(table, (20, 20))

    async def work(shop: Workshop) -> None:
        built = await built_as(shop, TERMS.replace("8", "7"))
        assert actions(built)["checks.cpp"] == "c"
        assert "FAIL" in (await shop.run(built, shop.task.shown[0])).text
        assert "rewrote src/table.h" in shop.notes[-1]

    in_workshop(app, work)


def test_nothing_is_reused_where_the_region_s_compiler_is_not_seen(app: Path) -> None:
    with_generated_table(app)
    edit(app / "Makefile", "\tg++ -o gen", "\t/usr/bin/g++ -o gen")
    edit(app / "src/main.cpp", '#include "smooth.hpp"', SMOOTH)

    async def work(shop: Workshop) -> None:
        built = await built_as(shop, TERMS.replace("8", "7"))
        assert set(actions(built).values()) == {"c"}

    in_workshop(app, work)


def test_objects_are_kept_as_they_come_from_the_compiler(app: Path) -> None:
    """What lies at the end of the build where an object was written may be another's, or gone."""
    edit(app / "Makefile", "\t$(CXX) -o $@ $^", "\tg++ -c -o x.o src/a.cpp && mv x.o a.o\n\tg++ -c -o x.o src/b.cpp\n"
         "\tg++ -o $@ $^ a.o x.o")  # fmt: skip
    (app / "src/a.cpp").write_text("int a() { return 1; }\n")
    (app / "src/b.cpp").write_text("int b() { return 2; }\n")

    async def work(shop: Workshop) -> None:
        assert actions(await built_as(shop, FASTER)) == {"main.cpp": "a", "checks.cpp": "r", "a.cpp": "r", "b.cpp": "r"}

    in_workshop(app, work)


def test_a_header_made_outside_of_the_repository_is_no_pristine_file(app: Path) -> None:
    edit(app / "Makefile", "src/%.o:", "src/checks.o: made\nmade:\n\techo '#define TERMS 8' > /tmp/table.h\nsrc/%.o:")
    edit(app / "Makefile", "$(CXX) $(CXXFLAGS)", "$(CXX) -I/tmp $(CXXFLAGS)")
    edit(app / "src/checks.cpp", "#include <cmath>", "#include <cmath>\n#include <table.h>")

    async def work(shop: Workshop) -> None:
        assert actions(await built_as(shop, FASTER)) == {"main.cpp": "a", "checks.cpp": "c"}

    in_workshop(app, work)


@pytest.mark.parametrize(
    "options",
    ["--output $@", "-o$@ -MD -MF$*.d -MT$@", "-MMD -MP -MF $*.d -MQ$@ --output=$@"],
)
def test_options_with_their_value_joined_are_understood(app: Path, options: str) -> None:
    """Else the list of dependencies is written over the object, or an object is not reused."""
    lists = "\trm main.d checks.d\n" if "-MF" in options else ""
    (app / "Makefile").write_text(
        MAKEFILE.replace("\tg++ -o $@ $^\n", f"\tg++ -o$@ $^\n{lists}").replace("-c -o $@", f"-c {options}")
    )

    async def work(shop: Workshop) -> None:
        built = await built_as(shop, FASTER, "-O2")
        assert actions(built) == {"main.cpp": "a", "checks.cpp": "r"}
        assert "PASS" in (await shop.run(built, shop.task.shown[0])).text

    in_workshop(app, work)


def test_a_command_that_lists_dependencies_in_the_preprocessor_s_way_is_compiled_each_time(app: Path) -> None:
    (app / "Makefile").write_text(MAKEFILE.replace("-c -o $@ $<", "-c -Wp,-MD,$*.d -o $@ $< && rm $*.d"))

    async def work(shop: Workshop) -> None:
        assert actions(await built_as(shop, FASTER)) == {"main.cpp": "a", "checks.cpp": "c"}

    in_workshop(app, work)


STAMPED = MAKEFILE.replace("-std=c++17", "-std=c++17 -DSTAMP=$(shell date +%N)")
TEMPORARY = """\
app:
\tmain=$$(mktemp -d)/main.o; checks=$$(mktemp).o; g++ $(EXTRA_CFLAGS) -c -o $$main src/main.cpp && \\
\tg++ $(EXTRA_CFLAGS) -c -o $$checks src/checks.cpp && g++ -o $@ $$main $$checks
"""


@pytest.mark.parametrize("makefile", [STAMPED, TEMPORARY])
def test_words_that_change_from_build_to_build_hide_no_unit(app: Path, makefile: str) -> None:
    (app / "Makefile").write_text(makefile)

    async def work(shop: Workshop) -> None:
        built = await built_as(shop, FASTER, "-O3")
        assert actions(built) == {"main.cpp": "u", "checks.cpp": "c"}
        asked = {command.sources[0]: command.argv for command in built.commands if command.sources}
        assert asked["src/main.cpp"][-1] == "-O3"
        assert "-O3" not in asked["src/checks.cpp"]

    in_workshop(app, work)


def test_a_unit_that_is_not_compiled_again_is_stale(app: Path) -> None:
    (app / "src/old.cpp").write_text((app / "src/main.cpp").read_text().replace('#include "smooth.hpp"', SMOOTH))
    edit(app / "Makefile", "\t$(CXX) $(CXXFLAGS) -c -o $@ $<",
         "\t$(CXX) -c -o $@ $$(grep -q 'k <= 7' src/smooth.hpp && echo $(<:main.cpp=old.cpp) || echo $<)")  # fmt: skip

    async def work(shop: Workshop) -> None:
        await built_as(shop, FASTER)
        failed = await shop.build(Candidate({"smooth": WRONG}))
        assert isinstance(failed, BuildFailure)
        assert "did not compile src/smooth.hpp again" in failed.log

    in_workshop(app, work)


def test_compile_arguments_that_do_not_arrive_fail_the_build(app: Path) -> None:
    """Here the region's second unit is left out whenever the first one was compiled with further arguments."""
    (app / "src/second.cpp").write_text('#include "smooth.hpp"\n')
    (app / "Makefile").write_text(
        "app:\n\tg++ -frecord-gcc-switches -c -o main.o src/main.cpp\n"
        "\tgrep -q funroll main.o || g++ -c -o second.o src/second.cpp\n"
        "\tg++ -o app main.o src/checks.cpp\n"
    )

    async def work(shop: Workshop) -> None:
        failed = await shop.build(Candidate({}, ("-funroll-loops",)))
        assert isinstance(failed, BuildFailure)
        assert "did not reach every unit that reads src/smooth.hpp" in failed.log

    in_workshop(app, work)


def configured_by_cmake(app: Path) -> None:
    (app / "CMakeLists.txt").write_text(CMAKE)
    (app / "Makefile").unlink()
    edit(
        app / "kernelwright.toml",
        'command = "make EXTRA_CFLAGS={flags}"\nartifact = "app"',
        'configure = "cmake -S . -B out"\ncommand = "cmake --build out -j{jobs}"\nartifact = "out/app"',
    )
    edit(app / "kernelwright.toml", "./app ", "out/app ")


def test_without_a_sandbox_each_workspace_is_configured_by_itself(app: Path) -> None:
    configured_by_cmake(app)

    async def work(shop: Workshop) -> None:
        before = (shop.folder / "baseline/out/app").stat()
        built = await built_as(shop, WRONG, "-O2")
        assert sorted(command.action for command in built.commands) == ["a", "c", "r"]
        assert (await shop.run(built, shop.task.shown[0])).job.exit_code == 0
        assert (shop.folder / "baseline/out/app").stat() == before

    in_workshop(app, work, NoSandbox())


def test_without_a_sandbox_an_object_that_knows_its_folder_stays_there(app: Path) -> None:
    edit(app / "Makefile", "-std=c++17", "-std=c++17 -DHERE='\"$(CURDIR)\"'")

    async def work(shop: Workshop) -> None:
        assert actions(await built_as(shop, FASTER)) == {"main.cpp": "a", "checks.cpp": "c"}

    in_workshop(app, work, NoSandbox())


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_nvcc_s_lists_are_understood(app: Path) -> None:
    """Its rules have the target's bare name, and a space before the colon."""
    for name in ("main", "checks"):
        (app / f"src/{name}.cpp").rename(app / f"src/{name}.cu")
    (app / "Makefile").write_text(
        MAKEFILE.replace("g++", "nvcc").replace(".cpp", ".cu").replace("-o $@ $<", "-o=$@ $<")
    )
    edit(app / "kernelwright.toml", 'language = "cpp"', 'language = "cuda"')

    async def work(shop: Workshop) -> None:
        assert actions(await built_as(shop, FASTER, "-O3")) == {"main.cu": "a", "checks.cu": "r"}

    in_workshop(app, work)


@pytest.mark.parametrize("cmake", [False, True])
def test_a_kept_workspace_repeats_the_build_by_hand(app: Path, cmake: bool) -> None:
    if cmake:
        configured_by_cmake(app)

    async def work(shop: Workshop) -> tuple[Path, str, Built]:
        by_hand = reproduce(shop, shop.task.shown[0], ("-O3",))
        return shop.folder, by_hand, await built_as(shop, FASTER, "-O3")

    folder, by_hand, built = in_workshop(app, work, keep=True)
    try:
        (folder / "candidate-record/commands").unlink()
        done = subprocess.run(["bash", "-c", by_hand], capture_output=True, text=True, check=False)
        assert "PASS" in done.stdout, done.stderr
        program = (folder / "candidate" / ("out/app" if cmake else "app")).read_bytes()
        assert hashlib.sha256(program).hexdigest() == built.artifact
        assert b"\0-O3\0" in (folder / "candidate-record/commands").read_bytes()
    finally:
        remove(folder)


def test_the_way_to_reproduce_names_arguments_but_no_folder_that_is_gone(app: Path) -> None:
    async def judged(code: str) -> tuple[Outcome, str | None]:
        candidate = Candidate({"smooth": code}, ("-O3",))
        verdict = await verify(load_task(app), candidate, open_sandbox(), budget=EVALUATE)
        return verdict.outcome, verdict.reproduce

    line = (
        "make EXTRA_CFLAGS=-O1 && ./app 20000  "
        "# in a copy of the repository with the candidate in it, -O3 appended to the compiler's command for src/main.cpp"
    )
    assert asyncio.run(judged(SMOOTH.replace("sum = 0.0", "sum = nothing"))) == (Outcome.BUILD_FAILED, line)
    assert asyncio.run(judged(WRONG)) == (Outcome.WRONG_RESULT, line)
    assert asyncio.run(judged(SMOOTH.replace("{", '{ system("true");', 1))) == (Outcome.REFUSED, None)
