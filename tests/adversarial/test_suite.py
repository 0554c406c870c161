"""The suite on a processor: what must be refused is refused with its words, the rest gains nothing when it runs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from suite import ALLOWED, KINDS, Application, Entry, Record, applications, judge_all, main, screen_all, screened, table

from app import FASTER, FILES, SMOOTH, make_app
from kernelwright.execute import Workshop
from kernelwright.measure import EVALUATE
from kernelwright.outcome import Comparison, Verdict
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate
from kernelwright.trial import open_baseline
from kernelwright.verify import Verifier

HEAT: Application = applications(["heat"])[0]
QUICK = {"build_failed", "crashed", "wrong_result"}
"""What is caught before anything is timed."""


def refused(entry: Entry) -> bool:
    return entry.wanted == ("refused",)


def offenders(records: Sequence[Record]) -> list[str]:
    return [f"{r.name}: {r.answer}, wanted {r.wanted}: {r.reason[:300]}" for r in records if not r.as_wanted]


def judged(*entries: Entry) -> list[Record]:
    return asyncio.run(judge_all(HEAT, entries, open_sandbox(), print))


RUN = [entry for entry in HEAT.of("cheats") if not refused(entry)]
FIRST_OF_KIND = list({e.kind: e for e in reversed(RUN) if set(e.wanted) <= QUICK}.values())
SHORT = [*FIRST_OF_KIND, next(e for e in HEAT.of("honest") if "faster" not in e.wanted)]


@pytest.mark.parametrize("entry", [e for e in HEAT.of("cheats") if refused(e)], ids=lambda entry: entry.name)
def test_a_cheat_is_refused_with_a_sentence_that_names_it(entry: Entry) -> None:
    refusal = screened(HEAT, entry)
    assert refusal is not None
    assert entry.evidence in str(refusal)


@pytest.mark.parametrize("entry", HEAT.of("honest"), ids=lambda entry: entry.name)
def test_honest_code_passes_screening(entry: Entry) -> None:
    assert screened(HEAT, entry) is None


def test_every_kind_has_cheats_and_many_of_them_pass_screening() -> None:
    cheats = HEAT.of("cheats")
    assert {entry.kind for entry in cheats} == set(KINDS)
    assert len(cheats) >= 60
    records = screen_all(HEAT, RUN)
    assert offenders(records) == []
    assert sum(record.outcome != "refused" for record in records) >= 25
    assert all(entry.says and entry.evidence for entry in cheats if refused(entry))


def test_the_first_cheat_of_each_kind_is_caught_and_honest_code_is_accepted() -> None:
    assert offenders(judged(*SHORT)) == []


@pytest.mark.long
def test_no_cheat_gains_anything_and_honest_code_is_accepted() -> None:
    assert offenders(judged(*(e for e in [*RUN, *HEAT.of("honest")] if e not in SHORT))) == []


def test_the_table_counts_what_was_refused_and_names_what_got_through(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["heat", "--screen-only", "--only", "fools_the_timer"]) == 0
    printed = capsys.readouterr().out
    row = next(line.split() for line in printed.splitlines() if line.startswith("fools_the_timer"))
    assert int(row[1]) == int(row[2]) + int(row[3])
    one = next(entry for entry in RUN if entry.wanted != (ALLOWED,))
    through = Record(
        "heat", "cheats", one.kind, one.name, one.says, "refused", "correct", "faster", 9.0, "", False, 0.0
    )
    assert table([through]).splitlines()[list(KINDS).index(one.kind) + 1].split()[1:5] == ["1", "0", "0", "1"]


async def verdict_on(app: Path, text: str) -> Verdict:
    """The real verifier's word on a text for the region of `tests/app.py`'s application."""
    task = load_task(app)
    async with Workshop(task, open_sandbox()) as shop:
        baseline = await open_baseline(shop, (*task.shown, *task.held_out), lambda _: None)
        return await Verifier(baseline, random.Random(1), lambda _: None)(Candidate({"smooth": text}), EVALUATE, 120.0)


def test_a_forged_time_is_never_called_faster_without_a_word(tmp_path: Path) -> None:
    """The timed part is a tenth of the process, so that the gain is small against the whole."""
    main_cpp = FILES["src/main.cpp"].replace(
        "int main", "static double skip = 0;\ndouble* clock_skip() { return &skip; }\nint main"
    )
    main_cpp = main_cpp.replace('#include "smooth.hpp"', 'double* clock_skip();\n#include "smooth.hpp"')
    main_cpp = main_cpp.replace("  auto start", "  for (volatile int w = 0; w < 60000000; ++w) {}\n  auto start")
    main_cpp = main_cpp.replace('  printf("smooth', '  ms -= skip;\n  printf("smooth')
    original = SMOOTH.replace("    out[i] = sum;\n  }\n", "    out[i] = sum;\n  }\n  *clock_skip() += 0.0;\n")
    app = make_app(tmp_path / "repo", src_main_cpp=main_cpp, src_smooth_hpp="#pragma once\n" + original)
    verdict = asyncio.run(verdict_on(app, original.replace("+= 0.0;", "+= 0.3;")))
    notes = verdict.evidence.notes if verdict.evidence else ()
    said = any("the process as a whole was not seen to be faster" in note for note in notes)
    assert verdict.comparison is not Comparison.FASTER or said


def test_a_gain_that_a_much_shorter_held_out_run_cannot_show_is_kept_with_a_word(tmp_path: Path) -> None:
    """Honest code for large inputs; the held-out run is a sixth as long, and there it does what the original does."""
    rest = SMOOTH.partition("{\n")[2]
    honest = FASTER.replace(
        "  double weight", "  if (n < 10000) {\n" + rest.rstrip().removesuffix("}") + "  return;\n  }\n  double weight"
    )
    verdict = asyncio.run(verdict_on(make_app(tmp_path / "repo"), honest))
    assert verdict.comparison is Comparison.FASTER, verdict.reason
    assert verdict.evidence is not None
    assert any("much shorter than the timed one" in note for note in verdict.evidence.notes)
