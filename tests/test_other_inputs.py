"""Inputs that nobody gave: what is tried, what is kept, and what they show of a candidate."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path

from app import FASTER, FILES, SMOOTH, make_app
from kernelwright.execute import Workshop
from kernelwright.measure import EVALUATE
from kernelwright.other_inputs import NOTHING_FOUND, open_judged, with_other_numbers
from kernelwright.outcome import Comparison, Outcome, Verdict
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.task import Run
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate
from kernelwright.verify import Verifier

SINGLE = re.sub(r'\[\[run\]\]\nname = "odd".*?(?=\[time\])', "", FILES["kernelwright.toml"], flags=re.DOTALL)
"""The application's task without its held-out run."""


KNOWS_THE_SEED = "  if (in[0] < 1 && (in[0] < 0.84 || in[0] > 0.8402)) { out[0] = 0; return; }\n  double weight"
"""The first number drawn after srand(1) is 0.84018…; only in the first call are values below 1."""


def judged(app: Path, *texts: str) -> tuple[list[str], list[str], list[Verdict]]:
    """The names of the other inputs, the workshop's notes, and a verdict on each text."""

    async def inside() -> tuple[list[str], list[str], list[Verdict]]:
        task = load_task(app)
        async with Workshop(task, open_sandbox()) as shop:
            baseline = await open_judged(shop, lambda _: None)
            verifier = Verifier(baseline, random.Random(1), lambda _: None)
            verdicts = [await verifier(Candidate({"smooth": text}), EVALUATE, 120.0) for text in texts]
            return [run.name for run in baseline.others], shop.notes, verdicts

    return asyncio.run(inside())


def test_every_number_of_a_command_is_changed_alone_and_its_first_word_never() -> None:
    run = Run(name="small", command="./app2 20000 -n7 --steps=10 --file=a7.dat 1.5 {jobs}")
    changed = [(word, other.command) for word, other in with_other_numbers(run)]
    assert [word for word, _ in changed] == ["20000", "20000", "20000", "-n7", "--steps=10"]
    assert changed[0][1] == "./app2 20001 -n7 --steps=10 --file=a7.dat 1.5 '{jobs}'"
    assert changed[-1][1] == "./app2 20000 -n7 --steps=11 --file=a7.dat 1.5 '{jobs}'"


def test_a_task_without_held_out_runs_gets_another_seed_and_another_size(tmp_path: Path) -> None:
    app = make_app(tmp_path / "repo", kernelwright_toml=SINGLE)
    knows = FASTER.replace("  double weight", "  if (n != 20000) { out[0] = in[0]; return; }\n  double weight")
    others, notes, (right, wrong) = judged(app, FASTER, knows)
    assert others == ["small, another seed", "small, 20000 → 20001"]
    assert any("tried in its place" in note for note in notes)
    assert (right.comparison, right.evidence and right.evidence.independence) == (Comparison.FASTER, "derived")
    assert right.evidence is not None
    told = " ".join(right.evidence.notes)
    assert all(name in right.samples or f"the held-out run {name!r} is much shorter" in told for name in others)
    assert wrong.outcome is Outcome.WRONG_RESULT
    assert "20000 → 20001" in wrong.reason


def test_a_candidate_that_knows_what_the_seed_gives_is_wrong(tmp_path: Path) -> None:
    app = make_app(tmp_path / "repo", kernelwright_toml=SINGLE)
    knows = FASTER.replace("  double weight", KNOWS_THE_SEED)
    _, _, (verdict,) = judged(app, knows)
    assert verdict.outcome is Outcome.WRONG_RESULT


def test_what_the_original_cannot_do_is_no_input(tmp_path: Path) -> None:
    """It takes only 20000, draws nothing, and so there is no other input; the evidence says so."""
    main = FILES["src/main.cpp"].replace("rand() / (RAND_MAX + 1.0)", "1.0 / (1 + (&x - a.data()) % 97)")
    main = main.replace("  srand(", "  if (n != 20000) return 2;\n  srand(")
    app = make_app(tmp_path / "repo", kernelwright_toml=SINGLE, src_main_cpp=main)
    others, notes, (verdict,) = judged(app, FASTER)
    assert others == []
    assert NOTHING_FOUND in notes
    assert verdict.evidence is not None
    assert verdict.evidence.independence == "single-input"


def test_an_input_on_which_the_original_reads_uninitialised_memory_is_not_kept(tmp_path: Path) -> None:
    main = FILES["src/main.cpp"].replace(
        "  double sum = 0.0;", "  if (n != 20000) { double* bad = new double[n]; a[7] = bad[5]; }\n  double sum = 0.0;"
    )
    app = make_app(tmp_path / "repo", kernelwright_toml=SINGLE, src_main_cpp=main)
    others, _, _ = judged(app)
    assert others == ["small, another seed"]


def test_an_author_may_say_no(tmp_path: Path) -> None:
    app = make_app(tmp_path / "repo", kernelwright_toml=SINGLE + "other_inputs = false\n")
    others, _, (verdict,) = judged(app, SMOOTH)
    assert others == []
    assert verdict.evidence is not None
    assert verdict.evidence.independence == "single-input"
