"""Many jobs through one pool: given to it as it takes them, looked at meanwhile, and told of at the end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import click
from rich.live import Live

from kernelwright.cli import pool_view
from kernelwright.cli.options import console, print_json, stderr
from kernelwright.errors import InfrastructureError, KernelwrightError
from kernelwright.outcome import SCHEMA
from kernelwright.pool import Finished, JobSpec, error_to_json
from kernelwright.pool.board import Board
from kernelwright.pool.status import merged

LOOK_S = 1.0
"""How often the live view is drawn anew."""
LINE_S = 10.0
"""Where there is no terminal, a line at most this often says how far it is."""
AT_ONCE = 2000
"""Jobs that the pool is given at a time: more than it can have begun, fewer than would fill the memory."""
SHOWN = 5


class Driven(Protocol):
    """What a run needs of a pool."""

    board: Board

    async def run(self, spec: JobSpec) -> Finished: ...


@dataclass
class Ran:
    """What became of the jobs of a run."""

    jobs: int
    adopted: int = 0
    failed: list[tuple[JobSpec, InfrastructureError]] = field(default_factory=list)
    mistaken: list[Finished] = field(default_factory=list)
    """Those whose result is a mistake of the user's."""


async def drained(
    opening: AbstractAsyncContextManager[Driven],
    specs: Sequence[JobSpec],
    folder: Path,
    quiet: bool,
    at_once: int = AT_ONCE,
) -> Ran:
    """Run all of them, `at_once` at a time; what the machines fail is remembered, and the others go on."""
    ran = Ran(len(specs))
    left = iter(specs)

    async def feed(pool: Driven) -> None:
        for spec in left:
            try:
                done = await pool.run(spec)
            except InfrastructureError as error:
                ran.failed.append((spec, error))
            else:
                if done.error is not None:
                    ran.mistaken.append(done)

    async with opening as pool:
        pool.board.wanted = len(specs)
        tasks = [asyncio.create_task(feed(pool)) for _ in range(min(len(specs), at_once))]
        looking = asyncio.create_task(_look(pool.board, folder, quiet))
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in (looking, *tasks):
                task.cancel()
            await asyncio.gather(looking, *tasks, return_exceptions=True)
        ran.adopted = pool.board.counts["adopted"]
    return ran


async def _look(board: Board, folder: Path, quiet: bool) -> None:
    """Show how far it is, on stderr, until cancelled: the same that `pool status` shows."""
    if quiet:
        return
    with (
        Live(console=stderr, auto_refresh=False, transient=True)
        if stderr.is_terminal
        else contextlib.nullcontext() as live
    ):
        told, said_at = "", -LINE_S
        while True:
            snapshot = await asyncio.to_thread(merged, folder, board.snapshot())
            line = pool_view.counts(snapshot)
            if live is not None:
                live.update(pool_view.pools([snapshot]), refresh=True)
            elif line != told and time.monotonic() - said_at >= LINE_S:
                told, said_at = line, time.monotonic()
                click.echo(line, err=True)
            await asyncio.sleep(LOOK_S)


def tell(ran: Ran, folder: Path, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "schema": SCHEMA,
                "folder": str(folder),
                "jobs": ran.jobs,
                "results": ran.jobs - len(ran.failed),
                "adopted": ran.adopted,
                "mistaken": [{"job": done.id, "kind": done.kind, **(done.error or {})} for done in ran.mistaken],
                "failed": [_failure(spec, error) for spec, error in ran.failed],
            }
        )
        return
    before = f", {ran.adopted} of them from before" if ran.adopted else ""
    console.print(f"{ran.jobs - len(ran.failed)} of {ran.jobs} jobs have a result{before}: {folder / 'results'}",
                  soft_wrap=True, markup=False)  # fmt: skip
    for done in ran.mistaken[:SHOWN]:
        console.print(f"  {done.kind} {done.id[:8]}: {(done.error or {})['what']}", soft_wrap=True, markup=False)
    _more(len(ran.mistaken))
    for spec, error in ran.failed[:SHOWN]:
        stderr.print(f"failed: {spec.kind} {spec.id[:8]}: {error}", soft_wrap=True, markup=False)
    _more(len(ran.failed))
    if ran.failed:
        stderr.print("the same command again tries these, and no others", markup=False)


def _failure(spec: JobSpec, error: KernelwrightError) -> dict[str, Any]:
    return {
        "job": spec.id,
        **{key: text for key, text in error_to_json(error).items() if key != "kind"},
        "kind": spec.kind,
    }


def _more(count: int) -> None:
    if count > SHOWN:
        stderr.print(f"and {count - SHOWN} more", markup=False)
