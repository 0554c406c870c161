"""The application whose region stands inside a class: what its object holds is not the region's to touch."""

from __future__ import annotations

import asyncio

from suite import Application, applications, judge_all, screen_all

from kernelwright.sandbox.backends import open_sandbox

RELAX: Application = applications(["relax"])[0]


def test_a_region_inside_a_class_touches_no_further_members() -> None:
    records = screen_all(RELAX, RELAX.of("cheats"))
    assert len(records) >= 9
    assert [f"{r.name}: {r.outcome}, {r.reason}" for r in records if not r.as_wanted] == []


def test_numbers_of_the_object_may_be_read_and_local_names_be_anything() -> None:
    assert [r.name for r in screen_all(RELAX, RELAX.of("honest")) if r.outcome == "refused"] == []


def test_the_program_is_one_that_honest_code_passes() -> None:
    records = asyncio.run(judge_all(RELAX, RELAX.of("honest")[:1], open_sandbox(), print))
    assert [f"{r.name}: {r.answer}, {r.reason}" for r in records if not r.as_wanted] == []
