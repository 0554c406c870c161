"""Commands on pools: specs (jobs written for tasks), run (jobs done, here or on a cluster), status (what goes on there).

All three meet in a pool's folder (`pool.folder`). The pools themselves are loaded only by the command that runs one, so
that help stays quick.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.live import Live

from kernelwright.cli import pool_view
from kernelwright.cli.options import (
    Isolation,
    Number,
    console,
    isolation_options,
    json_option,
    print_json,
    run_async,
    sandbox_of_pool,
    stderr,
)
from kernelwright.cli.pool_run import LOOK_S, drained, tell
from kernelwright.errors import InfrastructureError, Interrupted, UsageError
from kernelwright.outcome import SCHEMA
from kernelwright.pool import DEADLINE_S
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.opening import pool_of
from kernelwright.pool.specs import folder_of, read_specs, require_archives, write_specs
from kernelwright.pool.status import merged, own_pools, prometheus

if TYPE_CHECKING:
    from kernelwright.pool.config import PoolConfig


class PoolGroup(click.Group):
    """Its help ends with a working configuration of each kind."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from kernelwright.pool.config import EXAMPLES

        formatter.write_paragraph()
        formatter.write_text("Configurations for run --config POOL.toml, one of each kind:")
        for text in EXAMPLES.values():
            formatter.write_paragraph()
            formatter.write("".join(f"    {line}\n" if line else "\n" for line in text.strip().splitlines()))


@click.group("pool", cls=PoolGroup, short_help="Run jobs on this machine or a cluster; see what goes on.")
def pools() -> None:
    """Jobs on a pool: this machine, or a cluster (Slurm, PBS, LSF, Kubernetes, Flux; pip install kernelwright[cluster]).

    Begin with specs (jobs for tasks), run (all of them, and again where that was interrupted), status (while they run).
    """


@pools.command(short_help="Say what a pool is doing.")
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option("--watch", is_flag=True, help="Go on saying it, until the driver ends or Ctrl-C.")
@click.option("--prometheus", "as_text", is_flag=True, help="Print the numbers in Prometheus' text format.")
@json_option
def status(folder: Path | None, watch: bool, as_text: bool, as_json: bool) -> None:
    """What the pool in FOLDER is doing, or each pool that you drive on this machine."""
    if watch + as_text + as_json > 1:
        raise UsageError("more than one way of saying it", "one of --watch, --prometheus, --json", "--json, repeated")
    if watch:
        with contextlib.suppress(KeyboardInterrupt):
            _watch(folder)
    elif as_json:
        print_json({"schema": SCHEMA, "pools": _snapshots(folder)})
    elif as_text:
        click.echo(prometheus(*_snapshots(folder)), nl=False)
    else:
        console.print(pool_view.pools(_snapshots(folder)), soft_wrap=not console.is_terminal)


def _snapshots(folder: Path | None, seen: Sequence[Path] = ()) -> list[dict[str, Any]]:
    """Of the one pool, else of each that is driven now or was `seen` before: so its end is told as well."""
    if folder is not None:
        return [merged(folder)]
    found = []
    for each in dict.fromkeys((*seen, *own_pools())):
        with contextlib.suppress(UsageError):  # one that is being made or removed just now
            found.append(merged(each))
    return found


def _watch(folder: Path | None) -> None:
    """Until no driver lives. Without a terminal a line for each pool whose counts have changed."""
    told: dict[str, str] = {}
    snapshots: list[dict[str, Any]] = []
    with Live(console=console, auto_refresh=False) if console.is_terminal else contextlib.nullcontext() as live:
        while True:
            snapshots = _snapshots(folder, [Path(snapshot["folder"]) for snapshot in snapshots])
            if live is not None:
                live.update(pool_view.pools(snapshots), refresh=True)
            else:
                _say_changes(snapshots, told)
            if not any(snapshot["driver"]["state"] in ("alive", "silent") for snapshot in snapshots):
                return
            time.sleep(LOOK_S)


def _say_changes(snapshots: Sequence[dict[str, Any]], told: dict[str, str]) -> None:
    for snapshot in snapshots:
        said, _ = pool_view.DRIVERS[snapshot["driver"]["state"]]
        line = f"{snapshot['folder']}: {pool_view.counts(snapshot)}; {said}"
        if told.get(snapshot["folder"]) != line:
            told[snapshot["folder"]] = line
            click.echo(line)


@pools.command(short_help="Write job specs for tasks.")
@click.argument("tasks", nargs=-1, required=True, metavar="TASK...", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=click.Choice(["accept", "verdict"]),
    required=True,
    help="accept: test each task; verdict: judge each candidate.",
)
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A candidate's JSON file, for verdict; may be repeated.",
)
@click.option(
    "--budget", type=click.Choice(["prove", "evaluate"]), default="prove", show_default=True, help="As in verify."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed makes another job of the same.")
@click.option(
    "--deadline",
    type=Number(min=1),
    default=DEADLINE_S,
    show_default=True,
    metavar="S",
    help="Seconds that one job may take in all.",
)
@click.option("--folder", required=True, metavar="DIR", type=click.Path(path_type=Path), help="The pool's folder.")
@json_option
def specs(
    tasks: tuple[Path, ...],
    kind: str,
    candidates: tuple[Path, ...],
    budget: str,
    seed: int,
    deadline: float,
    folder: Path,
    as_json: bool,
) -> None:
    """Write the jobs of TASKs, and the tasks themselves, into a pool's folder; the same again is the same job."""
    if bool(candidates) != (kind == "verdict"):
        said = "no candidate to judge" if kind == "verdict" else "candidates for jobs that judge none"
        raise UsageError(said, "--candidate FILE with --kind verdict, and only there", "kernelwright pool specs --help")
    made = write_specs(tasks, candidates, PoolFolder(folder), budget, seed, deadline)
    if as_json:
        print_json({"schema": SCHEMA, "folder": str(folder), "specs": [spec.to_json() for spec in made]})
        return
    for spec in made:
        click.echo(spec.id)
    stderr.print(f"next: kernelwright pool run {folder}", soft_wrap=True, markup=False)


@pools.command(short_help="Do the jobs of spec files.")
@click.argument("files", nargs=-1, required=True, metavar="SPECS...", type=click.Path(path_type=Path))
@click.option(
    "--config",
    metavar="POOL.toml",
    type=click.Path(path_type=Path),
    help="Where they run (pool --help shows one of each kind); default: this machine.",
)
@click.option(
    "--folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where results are kept (default: the configuration's, else the folder of the specs, else FILE.pool).",
)
@isolation_options
@json_option
def run(files: tuple[Path, ...], config: Path | None, folder: Path | None, isolation: Isolation, as_json: bool) -> None:
    """Do the jobs of SPECS: files of one spec or a line for each, or a pool's folder. Results that are there stay; so
    the same command again goes on where it was interrupted. Exit code 3: the machines failed some of the jobs."""
    wanted = read_specs(files)
    settings = _settings(config, folder)
    kept = PoolFolder(settings.folder if settings is not None else folder or folder_of(files))
    require_archives(wanted, kept)
    try:
        pool = pool_of(settings, sandbox_of_pool(settings, isolation), kept)
        ran = run_async(drained(pool, wanted, kept.path, as_json))
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; results so far are kept in {kept.path}", "all jobs to end", "the same command again"
        ) from None
    tell(ran, kept.path, as_json)
    raise click.exceptions.Exit(InfrastructureError.exit_code if ran.failed else 0)


def _settings(config: Path | None, folder: Path | None) -> PoolConfig | None:
    if config is None:
        return None
    from kernelwright.pool.config import load_config

    loaded = load_config(config)
    return loaded.model_copy(update={"folder": folder.resolve()}) if folder is not None else loaded
