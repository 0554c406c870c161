"""A job that fails tells whose doing it was by failing again: what is killed from outside, or loses its compiler, is never
the candidate's failure; what the candidate does, it does every time."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from faulty import processes

from app import FASTER, FILES, SMOOTH, make_app
from command import kernelwright
from kernelwright import mishaps
from kernelwright.errors import InfrastructureError, JobFault
from kernelwright.execute import BuildFailure, Built, Workshop, failure_of
from kernelwright.outcome import Outcome
from kernelwright.sandbox import JobResult
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate
from kernelwright.trial import CandidateFailed

KILLS_ITSELF = "#include <csignal>\n" + SMOOTH.replace("double sum = 0.0;", "double sum = 0.0; raise(SIGKILL);")
COIN = "  static bool once = [] { return std::random_device()() % 2 && raise(SIGKILL); }();\n"
SOMETIMES = "#include <csignal>\n#include <random>\n" + SMOOTH.replace(
    "  for (int i = 0;", COIN + "  for (int i = 0;", 1
)
LONG = FILES["kernelwright.toml"].replace("./app 20000", "./app 200000")


@asynccontextmanager
async def opened(app: Path, sandbox: str = "bubblewrap") -> AsyncIterator[tuple[Workshop, Built]]:
    async with Workshop(load_task(app), open_sandbox(sandbox)) as shop:
        yield shop, await shop.build_baseline()


async def sixty_runs(shop: Workshop, built: Built) -> None:
    for _ in range(60):
        if failure := failure_of(await shop.run(built, shop.task.shown[0]), 20):
            raise CandidateFailed(*failure)


def candidate(text: str) -> Candidate:
    return Candidate({"smooth": text})


@contextmanager
def killing_the_first(name: str) -> Iterator[list[processes.Process]]:
    """Kill, from outside, the first process of that name that our jobs start."""
    killed: list[processes.Process] = []
    over = threading.Event()

    def look() -> None:
        while not killed and not over.is_set():
            for process in processes.below(os.getpid()):
                if process.name == name and processes.kill(process, signal.SIGKILL):
                    killed.append(process)
                    return
            time.sleep(0.001)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def test_a_run_that_is_killed_from_outside_is_made_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(make_app(tmp_path, kernelwright_toml=LONG)) as (shop, built):
            with killing_the_first("app") as killed:
                result = await shop.run(built, shop.task.shown[0])
            assert (len(killed), built.lost) == (1, 1)
            assert failure_of(result, 20) is None
            assert "PASS" in result.text

    asyncio.run(story())


def test_a_run_whose_launcher_is_killed_is_made_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(make_app(tmp_path, kernelwright_toml=LONG)) as (shop, built):
            with killing_the_first("launch") as killed:
                result = await shop.run(built, shop.task.shown[0])
            assert (len(killed), built.lost) == (1, 1)
            assert "PASS" in result.text

    asyncio.run(story())


def test_a_program_that_kills_itself_every_time_has_crashed(app: Path) -> None:
    async def story() -> None:
        async with opened(app) as (shop, _):
            built = await shop.build(candidate(KILLS_ITSELF))
            assert isinstance(built, Built)
            failure = failure_of(await shop.run(built, shop.task.shown[0]), 20)
            assert failure is not None
            assert (failure[0], "signal 9" in failure[1]) == (Outcome.CRASHED, True)

    asyncio.run(story())


def test_a_program_that_kills_itself_now_and_then_cannot_choose_which_of_its_times_count(app: Path) -> None:
    async def story() -> None:
        async with opened(app) as (shop, _):
            built = await shop.build(candidate(SOMETIMES))
            assert isinstance(built, Built)
            with pytest.raises((JobFault, CandidateFailed), match=r"were ended from outside|signal 9"):
                await sixty_runs(shop, built)
            assert built.lost <= mishaps.MOST_LOST + 1

    asyncio.run(story())


def test_a_build_whose_compiler_is_killed_is_made_again(app: Path) -> None:
    async def story() -> None:
        async with opened(app) as (shop, _):
            with killing_the_first("cc1plus") as killed:
                built = await shop.build(candidate(FASTER))
            assert (len(killed), type(built)) == (1, Built)

    asyncio.run(story())


def test_the_original_s_build_is_made_again_too(app: Path) -> None:
    async def story() -> None:
        with killing_the_first("make") as killed:
            async with opened(app) as (_, built):
                assert (len(killed), type(built)) == (1, Built)

    asyncio.run(story())


def test_a_compiler_that_becomes_another_one_is_named(
    app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "bin"
    mine.mkdir()
    (mine / "g++").write_text('#!/bin/sh\nexec /usr/bin/g++ "$@"\n')
    (mine / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", f"{mine}:{os.environ['PATH']}")

    async def story() -> None:
        async with opened(app) as (shop, _):
            assert isinstance(await shop.build(candidate(FASTER)), Built)
            (mine / "g++").unlink()
            with pytest.raises(
                InfrastructureError, match=r"the compiler g\+\+ .* has been replaced since the work began"
            ):
                await shop.build(candidate(FASTER))

    asyncio.run(story())


def test_a_build_is_only_believed_to_fail_while_the_original_still_builds(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch()
    makefile = FILES["Makefile"].replace("\t$(CXX) $(CXXFLAGS)", f"\ttest -e {there}\n\t$(CXX) $(CXXFLAGS)")

    async def story() -> None:
        async with opened(make_app(tmp_path / "repo", Makefile=makefile), "none") as (shop, _):
            assert isinstance(await shop.build(candidate(FASTER)), Built)
            there.unlink()
            with pytest.raises(
                InfrastructureError, match="the original, which was built before, does not build any more"
            ):
                await shop.build(candidate(FASTER))

    asyncio.run(story())


@pytest.mark.parametrize(
    "text",
    [
        SMOOTH.replace("sum +=", "total +="),
        '#include "nowhere.hpp"\n' + SMOOTH,
        "void elsewhere();\n" + SMOOTH.replace("double sum = 0.0;", "double sum = 0.0; elsewhere();"),
        '#error "Killed: No space left on device"\n' + SMOOTH,
    ],
    ids=["a plain error", "a header that is not there", "a function that is not there", "words of the machine"],
)
def test_a_candidate_s_own_failure_stays_one(app: Path, text: str) -> None:
    async def story() -> None:
        async with opened(app) as (shop, _):
            failure = await shop.build(candidate(text))
            assert isinstance(failure, BuildFailure)
            assert failure.outcome is Outcome.BUILD_FAILED

    asyncio.run(story())


@pytest.mark.parametrize(
    ("log", "answer"),
    [
        ("src/a.cpp:3:1: error: expected ';'", False),
        ('a.cu(12): error: identifier "x" is undefined', False),
        ("/usr/bin/ld: main.o: undefined reference to `f()'", False),
        ("make: g++: No such file or directory", True),
        ("g++: command not found", True),
        ("g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.", True),
        ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", True),
        ("clang: error: unable to execute command: Killed", True),
        ("collect2: fatal error: ld terminated with signal 9 [Killed]", True),
        ("g++: fatal error: cannot execute 'cc1plus': execvp: No such file or directory", True),
        ("fatal error: error writing to /tmp/x.s: No space left on device", True),
        ("virtual memory exhausted: Cannot allocate memory", True),
        ("a.cpp:1: internal compiler error: Segmentation fault", True),
        ("make: *** [Makefile:3: app] Error 1", True),
    ],
)
def test_logs_that_may_speak_of_the_machine(log: str, answer: bool) -> None:
    assert mishaps.doubtful(log) is answer


@pytest.mark.parametrize(
    ("log", "answer"),
    [
        ("make: g++: No such file or directory", True),
        ("make: No such file or directory", True),
        ("g++: command not found", True),
        ("g++: fatal error: cannot execute 'cc1plus': execvp: No such file or directory", True),
        ("g++: fatal error: cannot execute ‘cc1plus’: execvp: No such file or directory", True),
        ("collect2: fatal error: cannot find 'ld'", True),
        ("/usr/include/time.h:29:10: fatal error: stddef.h: No such file or directory", True),
        ("src/main.cpp:3:10: fatal error: mine.hpp: No such file or directory", False),
        ("nosuchcompiler: No such file or directory", False),
        ("make: mycc: No such file or directory", False),
    ],
)
def test_logs_that_say_that_a_tool_is_not_there(log: str, answer: bool) -> None:
    assert mishaps.lacks_tool(log) is answer


@pytest.mark.parametrize(
    ("code", "number", "answer"),
    [(0, None, False), (1, None, False), (None, 11, False), (None, 6, False), (None, 9, True), (None, 15, True),
     (137, None, True), (139, None, False)],
)  # fmt: skip
def test_ends_that_may_come_from_outside(code: int | None, number: int | None, answer: bool) -> None:
    assert mishaps.from_outside(JobResult(code, number, b"", b"", 0.1, 0.1, 1)) is answer


def test_an_original_that_fails_now_and_then_is_told_and_no_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    count = tmp_path / "count"
    script = f"#!/bin/sh\\nif test -e {count}.4; then exit 0; fi\\n"
    script += f"for n in 1 2 3 4; do test -e {count}.\\$$n || {{ touch {count}.\\$$n; break; }}; done\\n"
    script += "echo 'smooth: 1.0 ms'; echo sum 1.0; echo PASS; echo 1.0 > field.txt\\n"
    makefile = FILES["Makefile"].replace("$(CXX) -o $@ $^", f'printf "{script}" > $@ && chmod +x $@')
    repo = make_app(tmp_path / "repo", Makefile=makefile)
    said = kernelwright(capsys, "bench", repo, "--runs", 4, "--no-sandbox", "--json")
    assert (said.code, said.error["kind"]) == (2, "task")
    assert "the unmodified program, run 'small'" in said.error["what"]


@pytest.mark.parametrize("runs", [16, 17])
def test_an_original_that_fails_beside_itself_is_told_and_no_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, runs: int
) -> None:
    """Two runs in a row, one of the original and one of its second build: whichever fails, the original is not sound."""
    count = (
        f'FILE* c = fopen("{tmp_path}/n", "a"); fputc(46, c); long at = ftell(c); fclose(c); if (at > {runs}) abort();'
    )
    main = FILES["src/main.cpp"].replace("srand(", count + "\n  srand(")
    repo = make_app(tmp_path / "repo", src_main_cpp=main)
    said = kernelwright(capsys, "check", repo, "--no-sandbox", "--json")
    assert (said.code, said.error["kind"]) == (2, "task")
    assert "the unmodified program" in said.error["what"]
    assert "signal 6" in said.error["what"]
