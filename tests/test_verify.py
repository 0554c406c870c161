"""The verifier on real candidates: each gets the outcome it must get, with its evidence."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from app import FASTER, SLOWER, SMOOTH, WRONG
from kernelwright.errors import TaskError
from kernelwright.execute import Workshop
from kernelwright.measure import EVALUATE
from kernelwright.outcome import Comparison, Outcome, Verdict
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate
from kernelwright.trial import open_baseline
from kernelwright.verify import Verifier


def verdicts(app: Path, *candidates: Candidate) -> list[Verdict]:
    async def inside() -> list[Verdict]:
        task = load_task(app)
        async with Workshop(task, open_sandbox()) as shop:
            baseline = await open_baseline(shop, (*task.shown, *task.held_out), lambda _: None)
            verifier = Verifier(baseline, random.Random(1), lambda _: None)
            return [await verifier(candidate, EVALUATE, 120.0) for candidate in candidates]

    return asyncio.run(inside())


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def of(*texts: str) -> list[Candidate]:
    return [Candidate({"smooth": text}) for text in texts]


def outcomes(found: Sequence[Verdict]) -> list[Outcome]:
    return [verdict.outcome for verdict in found]


def test_faster_slower_and_wrong_are_told_apart(app: Path) -> None:
    faster, slower, wrong = verdicts(app, *of(FASTER, SLOWER, WRONG))
    assert (faster.outcome, faster.comparison) == (Outcome.CORRECT, Comparison.FASTER)
    assert faster.ok
    assert faster.interval is not None
    assert 1 < faster.interval.low < faster.interval.high
    assert faster.evidence is not None
    assert (faster.evidence.kinds, faster.evidence.independence) == (("outside", "numbers", "program"), "held-out")
    assert len(faster.samples["small"]["pairs"]) == 8
    assert (slower.outcome, slower.comparison, slower.ok) == (Outcome.CORRECT, Comparison.SLOWER, False)
    assert (wrong.outcome, wrong.comparison, wrong.speedup) == (Outcome.WRONG_RESULT, None, None)
    assert "numbers differ from the original's" in wrong.reason


def test_what_is_right_only_for_the_shown_input_is_wrong(app: Path) -> None:
    cheat = FASTER.replace("  double weight", "  if (n == 3001) { out[0] = in[0]; return; }\n  double weight")
    (verdict,) = verdicts(app, *of(cheat))
    assert verdict.outcome is Outcome.WRONG_RESULT
    assert "'odd'" in verdict.reason


def test_each_failure_has_its_outcome(app: Path) -> None:
    edit(app / "kernelwright.toml", "timeout_s = 20", "timeout_s = 2")
    found = verdicts(app, *of(
        "inline void smooth(const double* in, double* out, int n) { oops(in); }",
        "inline void smooth(const double* in, double* out, int n) { oops oops }",
        SMOOTH.replace("double sum", "out[n * 100000L] = 1; double sum"),
        SMOOTH.replace("double sum = 0.0;", "double sum = 0.0; for (volatile int w = 1; w;) {}"),
        SMOOTH.replace("  for (int i", '  printf("PASS");\n  for (int i', 1),
    ), Candidate({}, ("-fplugin=x.so",)))  # fmt: skip
    assert outcomes(found) == [
        Outcome.BUILD_FAILED,
        Outcome.BUILD_FAILED,
        Outcome.CRASHED,
        Outcome.TIMED_OUT,
        Outcome.REFUSED,
        Outcome.REFUSED,
    ]
    for verdict, said in zip(found, ("oops", "oops", "signal 11", "passed 2 s", "printf", "-fplugin"), strict=True):
        assert said in verdict.reason


def test_a_task_without_a_check_verifies_nothing(app: Path) -> None:
    file = app / "kernelwright.toml"
    text = file.read_text()
    file.write_text(text[: text.index("[[check]]")] + text[text.index("[verify]") :])
    (verdict,) = verdicts(app, *of(FASTER))
    assert verdict.outcome is Outcome.UNVERIFIED


def test_a_reference_run_that_does_not_end_well_is_named(app: Path) -> None:
    reference = '[[run]]\nname = "truth"\nrole = "reference"\ncommand = "sleep 9"\ntimeout_s = 1\n[time]'
    edit(app / "kernelwright.toml", "[time]", reference)
    with pytest.raises(TaskError, match="the reference run 'truth' passed 1 s"):
        verdicts(app)


def test_arguments_that_have_no_place_are_refused_and_never_dropped(app: Path) -> None:
    edit(app / "Makefile", "CXX = g++", "CXX = /usr/bin/g++")
    edit(app / "kernelwright.toml", 'make EXTRA_CFLAGS={flags}"', 'make"')
    (verdict,) = verdicts(app, Candidate({}, ("-O3",)))
    assert verdict.outcome is Outcome.REFUSED
    assert "compile arguments cannot be placed" in verdict.reason


def test_a_reported_gain_that_the_process_does_not_show_is_suspect(app: Path) -> None:
    """A program whose own clock can be fooled by the region; the wall time outside cannot."""
    edit(app / "src/main.cpp", "int main", "static double skip = 0;\nint main")
    edit(app / "src/main.cpp", '#include "smooth.hpp"', 'static double* clock_skip();\n#include "smooth.hpp"')
    edit(app / "src/main.cpp", "int main", "static double* clock_skip() { return &skip; }\nint main")
    edit(app / "src/main.cpp", '  printf("smooth', '  ms -= skip;\n  printf("smooth')
    edit(app / "src/main.cpp", "step < 12", "step < 60")
    edit(app / "src/smooth.hpp", "    out[i] = sum;\n  }\n", "    out[i] = sum;\n  }\n  *clock_skip() += 0.0;\n")
    cheat = (app / "src/smooth.hpp").read_text().partition("#pragma once\n")[2].replace("+= 0.0;", "+= 0.5;")
    (verdict,) = verdicts(app, *of(cheat))
    assert verdict.outcome is Outcome.SUSPECT
    assert "the program says that it saved" in verdict.reason


def test_with_two_shown_runs_faster_needs_neither_to_be_slower(app: Path) -> None:
    second = '[[run]]\nname = "large"\ncommand = "./app 30000"\noutputs = ["field.txt"]\n[[run]]\nname = "odd"'
    edit(app / "kernelwright.toml", '[[run]]\nname = "odd"', second)
    slow_if_large = FASTER.replace(
        "  double weight", "  if (n > 25000) for (volatile int w = 0; w < 40000000; ++w) {}\n  double weight"
    )
    (verdict,) = verdicts(app, *of(slow_if_large))
    assert (verdict.outcome, verdict.comparison) == (Outcome.CORRECT, Comparison.UNRESOLVED)
    assert "slower in large" in verdict.reason
    assert list(verdict.samples) == ["small", "large"]


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("src/checks.cpp", "return", "return !", "fails the check require 'PASS': not printed"),
        ("src/main.cpp", "smooth: %.6f", "smoth: %.6f", "no line of the output matches the time's pattern"),
        ("src/main.cpp", '%.6f ms\\n", ms', '%.6f ms\\n", 0.0', "the time read is 0"),
        ("src/main.cpp", "return 0;", "return 3;", "exit code 3, expected 0"),
        ("src/main.cpp", "rand() / (RAND_MAX + 1.0)", "noise()", "numbers differ from the original's"),
    ],
)
def test_a_baseline_that_is_not_sound_is_the_user_s_with_the_numbers(
    app: Path, file: str, old: str, new: str, said: str
) -> None:
    edit(app / file, old, new)
    if new == "noise()":
        edit(app / file, "int main", "double noise() { return std::random_device()() % 1000 / 1e3; }\nint main")
        edit(app / file, "#include <vector>", "#include <vector>\n#include <random>")
    with pytest.raises(TaskError) as caught:
        verdicts(app)
    assert said in str(caught.value)
