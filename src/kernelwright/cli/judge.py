"""Commands that judge: doctor (the machine), check (a task), verify (a candidate), bench (the baseline's times)."""

from __future__ import annotations

import contextlib
import statistics
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from kernelwright import accept as accepting
from kernelwright import verify as verifying
from kernelwright.candidates import from_patch, from_revision, read_candidate
from kernelwright.checks import read_time
from kernelwright.cli import present
from kernelwright.cli.mass import check_all
from kernelwright.cli.options import (
    Isolation,
    Number,
    console,
    isolation_options,
    json_option,
    kept_workspaces,
    print_json,
    progress_display,
    run_async,
    sandbox_for,
    sandbox_options,
    stderr,
)
from kernelwright.errors import InfrastructureError, UsageError
from kernelwright.execute import Workshop
from kernelwright.measure import EVALUATE, PROVE, estimate_s, seconds
from kernelwright.outcome import SCHEMA
from kernelwright.sandbox import Sandbox
from kernelwright.sandbox.attacks import all_attacks, name_of
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.slots import available_cores, slot
from kernelwright.stats import relative_noise
from kernelwright.suites.mass import How, is_folder_of_tasks
from kernelwright.task import Task
from kernelwright.task_file import load_task
from kernelwright.toolchain import Finding, peaks
from kernelwright.toolchain.doctor import findings
from kernelwright.trace import Candidate
from kernelwright.trial import Progress, exclusive, open_baseline, require_sound

TASK = click.argument("task", type=click.Path(path_type=Path))
BUDGETS = {"prove": PROVE, "evaluate": EVALUATE}


@click.command(short_help="Say what of this machine works, and what to do.")
@click.option(
    "--measure", is_flag=True, help="Measure what CPU and GPU can do at their best, anew (some seconds each)."
)
@click.option("--attacks", is_flag=True, help="Attack the sandbox instead, in every way that its tests do.")
@isolation_options
@json_option
def doctor(measure: bool, attacks: bool, isolation: Isolation, as_json: bool) -> None:
    """What of this machine works: compilers, GPUs, profilers, the sandbox; and what to do where it does not.

    With --attacks, exit code 1: an attack got further than it may."""
    if attacks:
        _attack(isolation, as_json)
        return
    if measure:
        run_async(_measure_peaks(isolation))
    listed = [_sandbox_finding(isolation), *findings()]
    if as_json:
        print_json({"schema": SCHEMA, "findings": [vars(finding) for finding in listed]})
    else:
        console.print(present.findings_table(listed))


async def _measure_peaks(isolation: Isolation) -> None:
    """Devices that cannot be measured are named by the findings."""
    for language in peaks.COMPILERS:
        with contextlib.suppress(peaks.NotMeasured):
            target = peaks.target(language)
            held = slot("gpu", (target.gpu,)) if target.gpu is not None else slot("cpu", available_cores())
            async with held:
                await peaks.measure(target, sandbox_for(isolation))


def _sandbox_finding(isolation: Isolation) -> Finding:
    try:
        found = run_async(open_sandbox(isolation.sandbox, isolation.image).probe())
    except InfrastructureError as error:
        return Finding("sandbox", False, error.what, error.try_)
    return Finding("sandbox", found.works, found.detail, found.advice)


def _attack(isolation: Isolation, as_json: bool) -> None:
    sandbox = sandbox_for(isolation)

    async def results() -> dict[str, str | None]:
        found = {}
        async for case, how in all_attacks(sandbox):
            found[name_of(case)] = how
            if not as_json:
                present.attack(console, name_of(case), how)
        return found

    found = run_async(results())
    through = [name for name, how in found.items() if how is not None]
    if as_json:
        print_json({"schema": SCHEMA, "sandbox": sandbox.name, "attacks": found})
    else:
        present.attacks(console, sandbox.name, len(found), len(through))
    raise click.exceptions.Exit(1 if through else 0)


@click.command(short_help="Test a task, or a folder of them, before it judges.")
@TASK
@click.option("--seed", type=int, help="Of the order in which original and candidate run (default: a new one).")
@click.option("--builds-only", is_flag=True, help="Only what needs no device: build the original and the probes.")
@click.option("--time-limit", type=Number(min=1), metavar="S", help="Seconds for the unmodified code against itself.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Of a folder: N tasks at random, by --seed.")
@click.option("--pool", metavar="POOL.toml", type=click.Path(path_type=Path), help="Of a folder: where the jobs run.")
@click.option(
    "--at-once", type=click.IntRange(1), metavar="N", help="Of a folder: tasks under way (default: the cores)."
)
@click.option("--anew", is_flag=True, help="Of a folder: ask again what was answered before.")
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path), help="Of a folder: every answer, a JSON line each."
)
@sandbox_options
@json_option
def check(
    task: Path,
    seed: int | None,
    builds_only: bool,
    time_limit: float | None,
    sample: int | None,
    pool: Path | None,
    at_once: int | None,
    anew: bool,
    out: Path | None,
    isolation: Isolation,
    keep_workspace: bool,
    as_json: bool,
) -> None:
    """Test a TASK (a task file or its folder) before anything is judged by it, or every task below a folder, several at a
    time; interrupted, the same command goes on. Exit code 1: refused."""
    if is_folder_of_tasks(task):
        if keep_workspace:
            raise UsageError("--keep-workspace with a folder of tasks", "one task", "one of its files")
        how = How(builds_only, time_limit, seed or 0)
        check_all(task, how, sample, pool, at_once, anew, out, isolation, as_json)
    for name, given in (
        ("--sample", sample),
        ("--pool", pool),
        ("--at-once", at_once),
        ("--anew", anew),
        ("--out", out),
    ):
        if given:
            raise UsageError(f"{name} with a single task", "a folder of tasks", f"without {name}")
    loaded = load_task(task)
    sandbox = sandbox_for(isolation)
    with kept_workspaces(keep_workspace), progress_display() as progress:
        if builds_only:
            testing = accepting.accept_builds(loaded, sandbox, keep=keep_workspace, progress=progress)
        else:
            testing = accepting.accept(
                loaded, sandbox, seed=seed, keep=keep_workspace, time_budget_s=time_limit, progress=progress
            )
        acceptance = run_async(testing)
    if as_json:
        print_json(acceptance.to_json())
    else:
        present.acceptance(console, acceptance)
    raise click.exceptions.Exit(1 if acceptance.reasons else 0)


@click.command(short_help="Judge one candidate: is it right, is it faster?")
@TASK
@click.argument("candidate", type=click.Path(path_type=Path), required=False)
@click.option(
    "--patch", metavar="FILE", type=click.Path(path_type=Path), help="The candidate as a patch of the repository."
)
@click.option("--rev", metavar="REV", help="The candidate as a git revision of the repository.")
@click.option(
    "--budget",
    type=click.Choice(list(BUDGETS)),
    default="prove",
    show_default=True,
    help="prove: until the answer is certain or time is up; evaluate: eight pairs.",
)
@click.option("--time-limit", type=Number(min=1), metavar="S", help="Seconds for timing (default: verify.budget_s).")
@click.option("--seed", type=int, help="Of the order in which original and candidate run (default: a new one).")
@sandbox_options
@json_option
def verify(
    task: Path,
    candidate: Path | None,
    patch: Path | None,
    rev: str | None,
    budget: str,
    time_limit: float | None,
    seed: int | None,
    isolation: Isolation,
    keep_workspace: bool,
    as_json: bool,
) -> None:
    """Judge a CANDIDATE (a JSON file, or --patch, or --rev) of a TASK. Exit code 1: not correct, or slower."""
    loaded = load_task(task)
    proposed = _candidate(loaded, candidate, patch, rev)
    sandbox = sandbox_for(isolation)
    with kept_workspaces(keep_workspace), progress_display() as progress:
        verdict = run_async(
            verifying.verify(
                loaded,
                proposed,
                sandbox,
                budget=BUDGETS[budget],
                time_budget_s=time_limit,
                seed=seed,
                keep=keep_workspace,
                progress=_announcing(progress, loaded, time_limit),
            )
        )
    if as_json:
        print_json(verdict.to_json())
    else:
        present.verdict(console, verdict)
    if keep_workspace and verdict.reproduce:
        stderr.print(f"by hand: {verdict.reproduce}", soft_wrap=True, markup=False)
    raise click.exceptions.Exit(0 if verdict.ok else 1)


def _candidate(task: Task, file: Path | None, patch: Path | None, rev: str | None) -> Candidate:
    if sum(given is not None for given in (file, patch, rev)) != 1:
        raise UsageError(
            "no single candidate is named",
            "exactly one of CANDIDATE.json, --patch FILE, --rev REV",
            "kernelwright verify --help",
        )
    if file is not None:
        return read_candidate(task, file)
    return from_patch(task, patch) if patch is not None else from_revision(task, rev or "")


def _announcing(progress: Progress, task: Task, time_limit: float | None) -> Progress:
    click.echo(f"time budget: {time_limit or task.verify.budget_s:g} s for the timing of each run", err=True)
    return progress


@click.command(short_help="Time the unmodified program.")
@TASK
@click.option(
    "--runs", "count", default=10, type=click.IntRange(1, 10_000), show_default=True, help="Timed runs of each."
)
@sandbox_options
@json_option
def bench(task: Path, count: int, isolation: Isolation, keep_workspace: bool, as_json: bool) -> None:
    """Time the unmodified program of a TASK: median, spread and range of each shown run."""
    loaded = load_task(task)
    sandbox = sandbox_for(isolation)
    with kept_workspaces(keep_workspace), progress_display() as progress:
        times = run_async(_bench(loaded, sandbox, count, keep_workspace, progress))
    if as_json:
        print_json({"schema": SCHEMA, "task": loaded.name, "sandbox": sandbox.name, "runs": times})
        return
    table = Table("run", "median", "spread", "min … max", "process (wall)", "runs", box=None)
    for name, data in times.items():
        own, wall = data["time_s"], data["wall_s"]
        noise = relative_noise(own)
        table.add_row(
            name,
            seconds(statistics.median(own)),
            f"{noise:.2%}" if noise is not None else "–",
            f"{seconds(min(own))} … {seconds(max(own))}",
            seconds(statistics.median(wall)),
            str(len(own)),
        )
    console.print(table)
    worst = estimate_s(PROVE, statistics.median(next(iter(times.values()))["wall_s"]))
    console.print(f"a proof takes {worst.best_s:.0f} to {worst.worst_s:.0f} s of runs like the first")


async def _bench(task: Task, sandbox: Sandbox, count: int, keep: bool, progress: Progress) -> dict[str, dict[str, Any]]:
    async with Workshop(task, sandbox, keep) as shop:
        baseline = await open_baseline(shop, task.shown, progress)
        times: dict[str, dict[str, Any]] = {}
        for run in task.shown:
            async with exclusive(shop, progress):
                results = []
                for number in range(count):
                    progress(f"timing {run.name}: run {number + 1} of {count}")
                    results.append(await shop.run(baseline.built, run))
            for result in results:
                require_sound(baseline, run, result, baseline.results[run.name])
            times[run.name] = {
                "time_s": [read_time(task, result) for result in results],
                "wall_s": [result.job.wall_s for result in results],
                "cpu_s": [result.job.cpu_s for result in results],
            }
        return times
