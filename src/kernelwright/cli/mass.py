"""`kernelwright check` on a folder of many tasks: run on a pool, looked at meanwhile, and told of by reasons."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from kernelwright.cli.options import Isolation, console, print_json, run_async, sandbox_of_pool, stderr
from kernelwright.cli.pool_run import AT_ONCE, Ran, drained
from kernelwright.errors import InfrastructureError, Interrupted
from kernelwright.outcome import SCHEMA
from kernelwright.pool import Finished, JobSpec
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.opening import pool_of
from kernelwright.suites.mass import (
    STATES,
    How,
    Tested,
    answers_folder,
    by_reason,
    jobs,
    lacking,
    sampled,
    task_files,
    tested,
    write_answers,
)

EXAMPLES = 3
LACKS = "files that the checkout does not have"


def check_all(
    folder: Path,
    how: How,
    count: int | None,
    pool: Path | None,
    at_once: int | None,
    anew: bool,
    out: Path | None,
    isolation: Isolation,
    as_json: bool,
) -> None:
    """Test every task below `folder`, or `count` of them at random, that lacks no file; answers from before are taken over
    unless `anew`."""
    files, lacks = task_files(folder), lacking(folder)
    files = sampled([path for path in files if path not in lacks], count, how.seed)
    kept = answers_folder(folder)
    made = jobs(files, how, kept)
    specs = [spec for spec in made.values() if isinstance(spec, JobSpec)]
    if anew:
        kept.forget(spec.id for spec in specs)
    try:
        ran = _run(specs, kept, pool, at_once, isolation, as_json)
    except KeyboardInterrupt:
        _tested(folder, made, lacks, kept, out)
        raise Interrupted(
            f"interrupted; answers so far are kept in {kept.path}", "all tasks to be tested", "the same command again"
        ) from None
    found = _tested(folder, made, {} if count is not None else lacks, kept, out)
    if as_json:
        _print_json(found, folder, how, count)
    else:
        _print(found, ran, folder)
    for spec, error in ran.failed[:EXAMPLES]:
        stderr.print(f"failed: {spec.id[:8]}: {error}", soft_wrap=True, markup=False)
    if ran.failed:
        raise click.exceptions.Exit(InfrastructureError.exit_code)
    raise click.exceptions.Exit(0 if all(one.state in ("accepted", "builds", "lacking") for one in found) else 1)


def _run(
    specs: Sequence[JobSpec],
    kept: PoolFolder,
    pool: Path | None,
    at_once: int | None,
    isolation: Isolation,
    quiet: bool,
) -> Ran:
    config = None
    if pool is not None:
        from kernelwright.pool.config import load_config

        config = load_config(pool).model_copy(update={"folder": kept.path})
    opening = pool_of(config, sandbox_of_pool(config, isolation), kept)
    return run_async(drained(opening, specs, kept.path, quiet, at_once or AT_ONCE))


def _tested(
    folder: Path, made: Mapping[Path, JobSpec | str], lacks: Mapping[Path, str], kept: PoolFolder, out: Path | None
) -> list[Tested]:
    """What is known by now of each task, also written where the user asked for it."""
    found = [tested(folder, path, spec, _answer(kept, spec)) for path, spec in made.items()]
    found += [Tested(str(path.relative_to(folder)), "lacking", files, LACKS) for path, files in lacks.items()]
    if out is not None:
        write_answers(out, found)
    return found


def _answer(kept: PoolFolder, spec: JobSpec | str) -> Finished | None:
    return kept.result(spec.id) if isinstance(spec, JobSpec) else None


def _print_json(found: Sequence[Tested], folder: Path, how: How, count: int | None) -> None:
    states = Counter(one.state for one in found)
    print_json(
        {
            "schema": SCHEMA,
            "folder": str(folder),
            "tasks": len(found),
            "sample": {"count": count, "seed": how.seed} if count is not None else None,
            "builds_only": how.builds_only,
            "states": {state: states[state] for state in STATES},
            "reasons": [
                {"state": state, "reason": group, "count": len(files), "files": files}
                for state, group, files in by_reason(found)
            ],
            "results": [replace(one, acceptance=None).to_json() for one in found],
        }
    )


def _print(found: Sequence[Tested], ran: Ran, folder: Path) -> None:
    groups = by_reason(found)
    if groups:
        table = Table("tasks", "", "reason", "for example", box=None, pad_edge=False)
        for state, group, files in groups:
            more = ", …" if len(files) > EXAMPLES else ""
            table.add_row(str(len(files)), state, Text(group), Text(", ".join(files[:EXAMPLES]) + more))
        console.print(table)
    states = Counter(one.state for one in found)
    for state, meaning in STATES.items():
        if states[state]:
            console.print(f"{states[state]:5} of {len(found)} {state}: {meaning}", markup=False)
    if ran.adopted:
        console.print(f"{ran.adopted} of the answers are from before; --anew asks again", markup=False)
    if states["open"]:
        stderr.print(f"next: kernelwright check {shlex.quote(str(folder))}, the same command again", markup=False)
