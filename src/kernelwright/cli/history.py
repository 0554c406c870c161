"""Commands on what was kept: show (a run's trace), apply (its patch), runs (the list), clean."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from kernelwright import build_cache
from kernelwright.candidates import patch_of, written_over
from kernelwright.cli import present
from kernelwright.cli.kept import folder_of, patch_name, remove_files, status_of
from kernelwright.cli.options import console, json_option, print_json
from kernelwright.errors import UsageError
from kernelwright.outcome import SCHEMA
from kernelwright.source import region_spans
from kernelwright.state import state_home
from kernelwright.store import Run, Store
from kernelwright.task import Task
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate
from kernelwright.workspace import sweep

RUN = click.argument("run", default="last")


def told(run: Run) -> dict[str, Any]:
    """A run as `--json` prints it."""
    return {**asdict(run), "status": status_of(run)}


@click.command(short_help="Show a run: what was tried and what came of it.")
@RUN
@click.option("--attempt", type=click.IntRange(min=1), help="Only this one, counted from 1.")
@json_option
def show(run: str, attempt: int | None, as_json: bool) -> None:
    """The trace of a RUN (an id's beginning, or last): what was tried, what tools said, what it came to."""
    with Store.open() as store:
        found = store.find(run)
        begun = [number for number in store.attempts_begun(found.id) if attempt in (None, number + 1)]
        if attempt is not None and not begun:
            count = len(store.attempts_begun(found.id))
            raise UsageError(f"run {found.id} has no attempt {attempt}", f"one of 1 to {count}", f"show {found.id}")
        messages = {number: store.messages(found.id, number) for number in begun}
        result, approvals = store.result(found.id, "optimize"), store.result(found.id, "approvals")
    if as_json:
        print_json(
            {
                "schema": SCHEMA,
                "run": told(found),
                "result": result,
                "approvals": approvals["decisions"] if approvals else None,
                "attempts": {str(n): [message.to_json() for message in each] for n, each in messages.items()},
            }
        )
        return
    open_air = ", without a sandbox" if found.provenance.get("sandbox") == "none" else ""
    console.print(
        f"[bold]run {found.id}[/], {found.kind} of {escape(found.task)}, {found.created}, {status_of(found)}{open_air}"
    )
    if approvals is not None:
        console.print(escape(present.approvals(approvals["decisions"])))
    for number, each in messages.items():
        console.rule(f"attempt {number + 1}")
        present.trace(console, each)
    if result is not None:
        console.rule("result")
        present.optimized(console, result, folder_of(found))


@click.command(short_help="Apply a run's patch to the repository.")
@RUN
@click.option("--check", "only_check", is_flag=True, help="Say whether it applies; change nothing.")
@json_option
def apply(run: str, only_check: bool, as_json: bool) -> None:
    """Apply a RUN's patch to the repository. Refused where a region's file has changed since."""
    with Store.open() as store:
        found = store.find(run)
        result = store.result(found.id, "optimize")
    if result is None or not result["patch"]:
        raise _nothing_to_apply(found, result)
    task = load_task(found.task)
    candidate = Candidate(result["candidate"]["final_code"], tuple(result["candidate"]["compile_args"]))
    _require_unchanged(task, found, candidate, result["patch"])
    if not only_check:
        written_over(task, candidate)
    if as_json:
        print_json({"schema": SCHEMA, "run": found.id, "applied": not only_check, "flags_hint": result["flags_hint"]})
        return
    console.print("it applies" if only_check else f"applied to {escape(str(task.root))}", soft_wrap=True)
    if result["flags_hint"]:
        console.print(f"set the flags too: {escape(result['flags_hint'])}", soft_wrap=True)


def _nothing_to_apply(run: Run, result: dict[str, Any] | None) -> UsageError:
    if result is None:
        said = f"run {run.id} has no result: it is {status_of(run)}"
        return UsageError(said, "a run that ended", f"kernelwright optimize --resume {run.id}")
    if result["flags_hint"]:
        said = f"run {run.id} found compile arguments alone, which no patch can carry"
        return UsageError(said, "a run that changes code", f"in your build: {result['flags_hint']}")
    return UsageError(f"run {run.id} found nothing faster", "a run with a patch", "kernelwright runs, for another")


def _require_unchanged(task: Task, run: Run, candidate: Candidate, patch: str) -> None:
    """The patch must be what the candidate makes of the files as they are now."""
    spans = region_spans(task)
    known = set(candidate.code) <= set(spans)
    if known and patch_of(task, candidate) == patch:
        return
    if known and all(spans[name].text.strip() == text.strip() for name, text in candidate.code.items()):
        raise UsageError(f"run {run.id} is applied already", "the original code in its regions", "git diff")
    raise UsageError(
        f"{', '.join(sorted({region.file for region in task.region}))} changed since run {run.id}",
        "the files as they were then",
        f"git apply -3 {shlex.quote(str(folder_of(run) / patch_name(task)))}",
    )


@click.command(short_help="List all runs.")
@json_option
def runs(as_json: bool) -> None:
    """All runs, the oldest first."""
    with Store.open() as store:
        listed = [(run, store.result(run.id, "optimize")) for run in store.runs()]
    if as_json:
        print_json(
            {
                "schema": SCHEMA,
                "runs": [
                    {
                        **told(run),
                        "comparison": (result or {}).get("comparison"),
                        "speedup": (result or {}).get("speedup"),
                    }
                    for run, result in listed
                ],
            }
        )
        return
    table = Table("run", "task", "policy", "created", "status", "result", box=None, pad_edge=False)
    for run, result in listed:
        said = present.headline(result) if result else ""
        table.add_row(
            run.id,
            escape(run.provenance.get("task", run.task)),
            run.options.get("policy", ""),
            run.created[:19].replace("T", " "),
            status_of(run),
            said,
        )
    console.print(table)


@click.command(short_help="Remove kept workspaces, and runs.")
@click.argument("run", required=False)
@click.option("--all", "everything", is_flag=True, help="Remove every run.")
@json_option
def clean(run: str | None, everything: bool, as_json: bool) -> None:
    """Remove workspaces that were kept or left, kept builds, and a RUN (an id's beginning, or last; --all) with its files."""
    if run is not None and everything:
        raise UsageError("both a run and --all are given", "one of them", "kernelwright clean --all")
    removed = [str(folder) for folder in sweep(state_home() / "work", kept=True)]
    builds = build_cache.forget()
    deleted = []
    if run is not None or everything:
        with Store.open() as store:
            for each in store.runs() if everything else [store.find(run or "")]:
                if status_of(each) == "running":
                    raise UsageError(f"run {each.id} is being worked on", "a run that ended", "Ctrl-C in its terminal")
                store.delete(each.id)
                remove_files(each)
                deleted.append(each.id)
    if as_json:
        print_json({"schema": SCHEMA, "workspaces": removed, "builds": builds, "runs": deleted})
    else:
        console.print(f"removed {len(removed)} workspace(s), {builds} kept build(s) and {len(deleted)} run(s)")
