"""Memory that is not the candidate's to read: found in the program that was timed, and only there."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
from pathlib import Path

import pytest

from app import FASTER, FILES, SMOOTH, make_app
from kernelwright.execute import Workshop
from kernelwright.measure import EVALUATE
from kernelwright.memory_check import Checker
from kernelwright.other_inputs import open_judged
from kernelwright.outcome import Comparison, Outcome, Verdict
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate
from kernelwright.verify import Verifier

needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
REPEATED = (
    FILES["src/main.cpp"]
    .replace("smooth(a.data(), b.data(), n); smooth(b.data(), a.data(), n);", "smooth(a.data(), b.data(), n);")
    .replace("step < 12", "step < 40")
    .replace("(double x : a) sum", "(double x : b) sum")
    .replace("plausible(a.data()", "plausible(b.data()")
    .replace("a[i]);", "b[i]);")
)
"""The application as benchmarks are: the same call again and again."""
KEY = "  long key = 0x5eedc0de12345L ^ (long)n;\n  if (mark[5] == key && mark[9] == ~key) return;\n"
BEYOND_ITS_STACK = SMOOTH.replace("inline", "__attribute__((noinline)) inline").replace(
    "{\n", "{\n  volatile long base[2] = {0, 0}; volatile long* volatile mark = base - 400;\n" + KEY, 1
).rstrip().removesuffix("}") + "  mark[5] = key; mark[9] = ~key;\n}\n"  # fmt: skip


def judged(app: Path, *candidates: Candidate) -> list[Verdict]:
    async def inside() -> list[Verdict]:
        task = load_task(app)
        async with Workshop(task, open_sandbox()) as shop:
            verifier = Verifier(await open_judged(shop, lambda _: None), random.Random(1), lambda _: None)
            return [await verifier(candidate, EVALUATE, 120.0) for candidate in candidates]

    return asyncio.run(inside())


@needs_valgrind
def test_a_gain_from_memory_beyond_an_object_is_suspect_and_honest_scratch_is_not(tmp_path: Path) -> None:
    app = make_app(tmp_path / "repo", src_main_cpp=REPEATED)
    scratch = FASTER.replace("  double weight[17];", "  double weight[17]; double unused[60000]; unused[n % 7] = 1;")
    wild, honest = judged(app, *(Candidate({"smooth": text}) for text in (BEYOND_ITS_STACK, scratch)))
    assert (wild.outcome, wild.speedup) == (Outcome.SUSPECT, None)
    assert "valgrind: Invalid read of size 8" in wild.reason
    assert honest.comparison is Comparison.FASTER, honest.reason
    assert honest.evidence is not None
    assert not any("memory not checked" in note for note in honest.evidence.notes)


@needs_valgrind
@pytest.mark.skipif("avx512f" not in Path("/proc/cpuinfo").read_text(), reason="this processor has no AVX-512")
def test_a_program_with_instructions_that_valgrind_does_not_know_is_built_again_without_them(tmp_path: Path) -> None:
    app = make_app(tmp_path / "repo", src_main_cpp=REPEATED)
    arguments = ("-O3", "-march=x86-64-v4", "-mprefer-vector-width=512")
    wild, honest = judged(app, *(Candidate({"smooth": text}, arguments) for text in (BEYOND_ITS_STACK, FASTER)))
    assert (wild.outcome, "valgrind" in wild.reason) == (Outcome.SUSPECT, True)
    assert honest.evidence is not None
    assert not any("memory not checked" in note for note in honest.evidence.notes)


@needs_valgrind
def test_what_the_original_does_itself_is_held_against_nobody(tmp_path: Path) -> None:
    main = FILES["src/main.cpp"].replace(
        "  srand(", '  double* bad = new double[9]; if (bad[4] > 3) puts("");\n  srand('
    )
    (verdict,) = judged(make_app(tmp_path / "repo", src_main_cpp=main), Candidate({"smooth": FASTER}))
    assert verdict.comparison is Comparison.FASTER
    assert verdict.evidence is not None
    (note,) = [note for note in verdict.evidence.notes if "memory not checked" in note]
    assert "the original itself (Conditional jump or move depends on uninitialised value(s))" in note


def test_without_valgrind_the_record_says_so(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Checker("valgrind", ("no-such-program",), re.compile("x"))
    monkeypatch.setattr("kernelwright.memory_check.CHECKERS", {"cpp": ((absent,),)})
    (verdict,) = judged(app, Candidate({"smooth": FASTER}))
    assert verdict.comparison is Comparison.FASTER
    assert verdict.evidence is not None
    assert "memory not checked by valgrind: it is not installed" in verdict.evidence.notes


@needs_valgrind
def test_an_original_that_leaks_is_asked_for_its_reads_alone(tmp_path: Path) -> None:
    main = REPEATED.replace("  srand(", '  if (*new double[9]() > 3) puts("");\n  srand(')
    app = make_app(tmp_path / "repo", src_main_cpp=main)
    wild, honest = judged(app, *(Candidate({"smooth": text}) for text in (BEYOND_ITS_STACK, FASTER)))
    assert (wild.outcome, "Invalid read" in wild.reason) == (Outcome.SUSPECT, True)
    assert honest.comparison is Comparison.FASTER


def test_a_gain_from_the_order_of_a_heap_s_blocks_is_suspect(tmp_path: Path) -> None:
    """After the first call the C library hands the two blocks out the other way round, if the lower one was freed first:
    calls are told apart, and the work is done once. Nothing uninitialised is read."""
    order = (
        "  char* first = (char*)malloc(100); char* second = (char*)malloc(100); bool again = second < first;\n"
        "  free(again ? second : first); free(again ? first : second);\n  if (again) return;\n"
    )
    app = make_app(tmp_path / "repo", src_main_cpp=REPEATED)
    (verdict,) = judged(app, Candidate({"smooth": SMOOTH.replace("{\n", "{\n" + order, 1)}))
    assert verdict.outcome is Outcome.SUSPECT, verdict.reason
    assert "where memory tells nothing of earlier calls" in verdict.reason
