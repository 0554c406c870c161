"""The CUDA application of the suite: refused on its text, compiled wherever nvcc is, judged where a device is.

What must be refused needs no compiler; what only a run can catch must at least build, or it would be caught by accident.
"""

from __future__ import annotations

import asyncio
import shutil

import pytest
from suite import KINDS, Application, Entry, Record, applications, build_all, judge_all, screen_all

from kernelwright.sandbox.backends import open_sandbox

APPLICATION: Application = applications(["heat_cuda"])[0]


def of(role: str, *, refused: bool) -> list[Entry]:
    return [entry for entry in APPLICATION.of(role) if ("refused" in entry.wanted) == refused]


def offenders(records: list[Record]) -> list[str]:
    return [f"{r.name}: {r.answer}, wanted {r.wanted}: {r.reason[:300]}" for r in records if not r.as_wanted]


def test_every_kind_has_cheats_on_a_device_and_many_need_a_run() -> None:
    cheats = APPLICATION.of("cheats")
    assert {entry.kind for entry in cheats} == set(KINDS)
    assert len(cheats) >= 60
    assert len(of("cheats", refused=False)) >= 25


def test_cheats_on_a_device_are_refused_for_what_they_hold() -> None:
    assert offenders(screen_all(APPLICATION, of("cheats", refused=True))) == []


def test_honest_kernels_and_launches_and_what_only_a_run_shows_pass() -> None:
    passing = [*APPLICATION.of("honest"), *of("cheats", refused=False), *of("open", refused=False)]
    assert [r.name for r in screen_all(APPLICATION, passing) if r.outcome == "refused"] == []


@pytest.mark.long
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
def test_what_only_a_run_shows_compiles() -> None:
    entries = [*APPLICATION.of("honest"), *of("cheats", refused=False), *of("open", refused=False)]
    assert offenders(asyncio.run(build_all(APPLICATION, entries, open_sandbox(), print))) == []


@pytest.mark.gpu
@pytest.mark.long
def test_no_cheat_gains_anything_on_a_device_and_honest_code_does() -> None:
    entries = APPLICATION.of("cheats", "honest")
    assert offenders(asyncio.run(judge_all(APPLICATION, entries, open_sandbox(), print))) == []
