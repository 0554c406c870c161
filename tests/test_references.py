"""A reference run is made once on a machine, and again as soon as anything that it depends on is another."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kernelwright.checks import RunResult
from kernelwright.execute import Workshop
from kernelwright.references import reference_run
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.sandbox.none import NoSandbox
from kernelwright.task_file import load_task

pytestmark = pytest.mark.usefixtures("home")
RUN = '[[run]]\nname = "slow"\nrole = "reference"\ncommand = "sh -c \'date +%N > said.txt; cat said.txt\'"\n'
CHECK = '[[check]]\nkind = "row"\nfile = "said.txt"\nrow = "a"\nreference = { run = "slow", row = "a" }\n[verify]'


def add_reference(app: Path) -> None:
    file = app / "kernelwright.toml"
    text = file.read_text().replace("[time]", RUN + "[time]", 1)
    file.write_text(text.replace("[verify]", CHECK, 1))


def reference(app: Path, *, isolated: bool = True) -> RunResult:
    async def work() -> RunResult:
        async with Workshop(load_task(app), open_sandbox() if isolated else NoSandbox()) as shop:
            return await reference_run(shop, await shop.build_baseline(), shop.task.references[0])

    return asyncio.run(work())


def test_a_reference_is_run_once_and_its_files_are_kept(app: Path) -> None:
    add_reference(app)
    first, second = reference(app), reference(app)
    assert first.job.stdout == second.job.stdout  # the nanosecond at which it ran
    assert second.files["said.txt"] == first.job.stdout
    assert (second.run, second.job.exit_code) == ("slow", 0)


def test_it_is_run_again_where_its_command_or_a_file_of_the_repository_changed(app: Path) -> None:
    add_reference(app)
    first = reference(app)
    source = app / "src/checks.cpp"
    source.write_text(source.read_text().replace("sum > 0.0", "sum > 1e-9"))
    second = reference(app)
    assert second.job.stdout != first.job.stdout
    file = app / "kernelwright.toml"
    file.write_text(file.read_text().replace("date +%N", "date  +%N"))
    assert reference(app).job.stdout != second.job.stdout


def test_without_a_sandbox_nothing_is_kept(app: Path) -> None:
    add_reference(app)
    assert reference(app, isolated=False).job.stdout != reference(app, isolated=False).job.stdout
