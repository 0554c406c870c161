"""Cheats that screening cannot see, each judged by the real verifier, beside honest code that looks like them.

A candidate is the text of the region of `tests/app.py`'s application, here one that repeats the same call as benchmarks
do; its first line says what the verdict must be, and what its reason must name.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from app import FASTER, FILES, SMOOTH, make_app
from kernelwright.execute import Workshop
from kernelwright.measure import EVALUATE
from kernelwright.outcome import Comparison, Verdict
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate
from kernelwright.trial import open_baseline
from kernelwright.verify import Verifier

CANDIDATES = sorted((Path(__file__).parent / "runs").iterdir())
REPEATED = (
    FILES["src/main.cpp"]
    .replace("smooth(a.data(), b.data(), n); smooth(b.data(), a.data(), n);", "smooth(a.data(), b.data(), n);")
    .replace("step < 12", "step < 40")
    .replace("(double x : a) sum", "(double x : b) sum")
    .replace("plausible(a.data()", "plausible(b.data()")
    .replace("a[i]);", "b[i]);")
)


def judged(app: Path, *texts: str) -> list[Verdict]:
    async def inside() -> list[Verdict]:
        task = load_task(app)
        async with Workshop(task, open_sandbox()) as shop:
            baseline = await open_baseline(shop, (*task.shown, *task.held_out), lambda _: None)
            verifier = Verifier(baseline, random.Random(1), lambda _: None)
            return [await verifier(Candidate({"smooth": text}), EVALUATE, 120.0) for text in texts]

    return asyncio.run(inside())


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Verdict]:
    """All candidates judged one after another by one verifier."""
    held_out = FILES["kernelwright.toml"].replace("./app 3001 77", "./app 17001 77")
    app = make_app(tmp_path_factory.mktemp("runs") / "repo", src_main_cpp=REPEATED, kernelwright_toml=held_out)
    texts = [path.read_text(encoding="utf-8").partition("\n")[2] for path in CANDIDATES]
    return dict(zip(CANDIDATES, judged(app, *texts), strict=True))


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda path: path.stem)
def test_a_cheat_that_only_a_run_shows_gains_nothing(candidate: Path, verdicts: dict[Path, Verdict]) -> None:
    verdict = verdicts[candidate]
    first = candidate.read_text(encoding="utf-8").split("\n")[0]
    wanted, _, reason = first.removeprefix("// ").partition(": ")
    assert wanted == (verdict.comparison or verdict.outcome), verdict.reason
    assert reason in verdict.reason


def test_a_forged_time_is_never_called_faster_without_a_word(tmp_path: Path) -> None:
    """The timed part is a tenth of the process, so that the gain is small against the whole."""
    main = FILES["src/main.cpp"].replace(
        "int main", "static double skip = 0;\ndouble* clock_skip() { return &skip; }\nint main"
    )
    main = main.replace('#include "smooth.hpp"', 'double* clock_skip();\n#include "smooth.hpp"')
    main = main.replace("  auto start", "  for (volatile int w = 0; w < 60000000; ++w) {}\n  auto start")
    main = main.replace('  printf("smooth', '  ms -= skip;\n  printf("smooth')
    original = SMOOTH.replace("    out[i] = sum;\n  }\n", "    out[i] = sum;\n  }\n  *clock_skip() += 0.0;\n")
    app = make_app(tmp_path / "repo", src_main_cpp=main, src_smooth_hpp="#pragma once\n" + original)
    (verdict,) = judged(app, original.replace("+= 0.0;", "+= 0.3;"))
    notes = verdict.evidence.notes if verdict.evidence else ()
    said = any("the process as a whole was not seen to be faster" in note for note in notes)
    assert verdict.comparison is not Comparison.FASTER or said


def test_a_gain_that_a_much_shorter_held_out_run_cannot_show_is_kept_with_a_word(tmp_path: Path) -> None:
    """Honest code for large inputs; the held-out run is a sixth as long, and there it does what the original does."""
    rest = SMOOTH.partition("{\n")[2]
    honest = FASTER.replace(
        "  double weight", "  if (n < 10000) {\n" + rest.rstrip().removesuffix("}") + "  return;\n  }\n  double weight"
    )
    (verdict,) = judged(make_app(tmp_path / "repo"), honest)
    assert verdict.comparison is Comparison.FASTER, verdict.reason
    assert verdict.evidence is not None
    assert any("much shorter than the timed one" in note for note in verdict.evidence.notes)
