"""Commands that make tasks of other people's programs: hecbench, rajaperf, make; list (what became of each benchmark) and
manifest (a dataset of them)."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from kernelwright.cli.options import (
    Isolation,
    Number,
    console,
    isolation_options,
    json_option,
    print_json,
    progress_display,
    run_async,
    sandbox_for,
    stderr,
)
from kernelwright.errors import Interrupted, UsageError
from kernelwright.outcome import SCHEMA
from kernelwright.slots import available_cores
from kernelwright.suites import LISTING, Benchmark, Importer, Listing, imported, read_listing
from kernelwright.suites import dataset as datasets
from kernelwright.suites.hecbench import HecBench, Language, read_arguments
from kernelwright.suites.make import AnyBuild
from kernelwright.suites.mass import Tested, read_answers
from kernelwright.suites.rajaperf import RajaPerf

EXAMPLES = 3
CHECKOUT = click.argument("checkout", type=click.Path(path_type=Path, file_okay=False, exists=True))
LANGUAGES = ("cuda", "hip", "cpp")


@click.group("tasks", short_help="Make tasks of a public suite, or of any Makefile.")
def tasks() -> None:
    """Make tasks of a public suite's checkout, or of any folder with a Makefile; datasets of them.

    Begin with hecbench, rajaperf or make (task files and a listing), then `kernelwright check DIR`, then manifest.
    """


def importing(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that every importer has."""
    for option in (
        click.option(
            "--out", required=True, metavar="DIR", type=click.Path(path_type=Path), help="For the task files."
        ),
        click.option("--only", multiple=True, metavar="NAME", help="This benchmark alone; may be repeated."),
        click.option("--no-run", is_flag=True, help="Only read: neither build nor run anything."),
        click.option(
            "--at-once", type=click.IntRange(1), metavar="N", help="Benchmarks at work at a time (default: the cores)."
        ),
        click.option("--anew", is_flag=True, help="Make again what an earlier import made."),
        isolation_options,
        json_option,
    ):
        command = option(command)
    return command


@tasks.command(short_help="Tasks of a HeCBench checkout.")
@CHECKOUT
@click.option(
    "--language", type=click.Choice(LANGUAGES), default="cuda", show_default=True, help="cpp: the -omp folders."
)
@click.option("--pairs", is_flag=True, help="All pairs of a benchmark's kernels too, not only each and all together.")
@click.option(
    "--arguments", metavar="FILE", type=click.Path(path_type=Path), help="TOML: the arguments of runs, NAME = 'WORDS'."
)
@click.option(
    "--run-limit",
    type=Number(min=1),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Seconds; a benchmark whose first run lasts longer gives no task.",
)
@click.option(
    "--seconds",
    type=Number(min=0),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Repeat less often where a run takes more; 0 leaves the suite's own arguments.",
)
@importing
def hecbench(
    checkout: Path,
    language: Language,
    pairs: bool,
    arguments: Path | None,
    run_limit: float,
    seconds: float,
    **options: Any,
) -> None:
    """Make a task of each kernel of each benchmark of a HeCBench CHECKOUT, and one of all kernels of it together."""
    given = read_arguments(arguments) if arguments else {}
    _import(HecBench(checkout, language, pairs, run_limit, seconds, given), **options)


@tasks.command(short_help="Tasks of a RAJAPerf checkout.")
@CHECKOUT
@click.option(
    "--build-dir", required=True, metavar="B", type=click.Path(path_type=Path), help="A folder where it was built."
)
@click.option("--language", type=click.Choice(LANGUAGES), default="cuda", show_default=True, help="cpp: OpenMP.")
@importing
def rajaperf(checkout: Path, build_dir: Path, language: str, **options: Any) -> None:
    """Make a task of each of the 36 kernels of a RAJAPerf CHECKOUT's groups Apps, Algorithm and Polybench."""
    _import(RajaPerf(checkout, build_dir, language), **options)


@tasks.command(short_help="Tasks of any folder with a Makefile or CMakeLists.txt.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--language", type=click.Choice(LANGUAGES), help="Of the kernels (default: all that are found).")
@click.option("--run", "command", metavar="CMD", help="The run, in place of the Makefile's: as in './main 1024 10'.")
@importing
def make(folder: Path, language: str | None, command: str | None, **options: Any) -> None:
    """Make a task of each kernel that is found below FOLDER; `kernelwright init` does that for one."""
    _import(AnyBuild(folder, language, command), **options)


def _import(
    importer: Importer,
    out: Path,
    only: tuple[str, ...],
    no_run: bool,
    at_once: int | None,
    anew: bool,
    isolation: Isolation,
    as_json: bool,
) -> None:
    names = _chosen(importer.names(), only)
    sandbox = None if no_run else sandbox_for(isolation)
    out.mkdir(parents=True, exist_ok=True)
    made: list[Benchmark] = []

    async def work() -> None:
        with progress_display(quiet=as_json) as progress:
            async for benchmark in imported(
                importer, out, names, sandbox, at_once or len(available_cores()), lambda _: None, anew
            ):
                made.append(benchmark)
                said = f"{len(benchmark.tasks)} tasks" if benchmark.tasks else f"none: {benchmark.reason}"
                progress(f"{len(made)} of {len(names)}: {benchmark.name}: {said}"[:200])

    try:
        run_async(work())
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted after {len(made)} of {len(names)}", "all benchmarks to be read", "the same command again"
        ) from None
    _tell(Listing(importer.origin, tuple(sorted(made, key=lambda one: one.name))), out, as_json, whole=False)


def _chosen(names: Sequence[str], only: Sequence[str]) -> list[str]:
    if not names:
        raise UsageError(
            "no benchmark was found", "a checkout of that suite, or a folder with kernels", "ls, to see it"
        )
    if unknown := [name for name in only if name not in names]:
        near = difflib.get_close_matches(unknown[0], names, 4, 0.5) or list(names[:6])
        raise UsageError(f"there is no benchmark {unknown[0]!r}", "a name of the checkout", f"one of {', '.join(near)}")
    return list(only) or list(names)


def _tell(listing: Listing, out: Path, as_json: bool, whole: bool) -> None:
    if as_json:
        data = [benchmark.to_json() for benchmark in listing.benchmarks]
        print_json({"schema": SCHEMA, "folder": str(out), "origin": vars(listing.origin), "benchmarks": data})
        return
    if whole:
        _print_each(listing)
    else:
        _print_reasons(listing)
    with_tasks = sum(bool(benchmark.tasks) for benchmark in listing.benchmarks)
    ran = sum(benchmark.ran for benchmark in listing.benchmarks)
    console.print(
        f"{listing.tasks} tasks of {with_tasks} of {len(listing.benchmarks)} benchmarks; {ran} were run", markup=False
    )
    if not whole:
        console.print(f"next: kernelwright check {shlex.quote(str(out))}", soft_wrap=True, markup=False)


def _print_each(listing: Listing) -> None:
    table = Table("benchmark", "tasks", "kernels, or the reason for none", "notes", box=None, pad_edge=False)
    for benchmark in listing.benchmarks:
        singles = [made.kernels[0] for made in benchmark.tasks if len(made.kernels) == 1]
        said = benchmark.reason or ", ".join(singles or benchmark.tasks[0].kernels)
        table.add_row(benchmark.name, str(len(benchmark.tasks)), Text(said), Text("; ".join(benchmark.notes)))
    console.print(table)


def _print_reasons(listing: Listing) -> None:
    groups: dict[str, list[str]] = {}
    for benchmark in listing.benchmarks:
        if benchmark.reason is not None:
            groups.setdefault(benchmark.reason.split(": ")[0], []).append(benchmark.name)
    if groups:
        table = Table("none", "reason", "for example", box=None, pad_edge=False)
        for reason, names in sorted(groups.items(), key=lambda item: -len(item[1])):
            table.add_row(str(len(names)), Text(reason), Text(", ".join(names[:EXAMPLES])))
        console.print(table)


@tasks.command("list", short_help="What became of each benchmark.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@json_option
def list_(folder: Path, as_json: bool) -> None:
    """For each benchmark of an import in FOLDER: the tasks that were made, or the reason for none."""
    listing = read_listing(folder)
    if listing is None:
        raise UsageError(f"{folder} has no {LISTING}", "a folder that an import wrote", "kernelwright tasks --help")
    _tell(listing, folder, as_json, whole=True)


@tasks.command(short_help="A dataset of tasks: a row for each, with its split.")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--out", required=True, metavar="DIR", type=click.Path(path_type=Path), help="For the manifest.")
@click.option(
    "--answers",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="What `check DIR --out FILE` wrote.",
)
@click.option("--held-out", multiple=True, metavar="NAME", help="A further benchmark that must never be in train.")
@click.option("--parquet", is_flag=True, help="One Parquet file a split too (pip install kernelwright[datasets]).")
@json_option
def manifest(
    folders: tuple[Path, ...],
    out: Path,
    answers: tuple[Path, ...],
    held_out: tuple[str, ...],
    parquet: bool,
    as_json: bool,
) -> None:
    """Write a dataset's manifest for the tasks in FOLDERS: origin, licence, what check said, and the split: train,
    validation or test by benchmark. RAJAPerf and LULESH, and near-duplicates of their kernels, are never in train."""
    made, left_out = datasets.rows(folders, _answers(folders, answers), out, held_out)
    written = datasets.write(made, out, parquet)
    counts = datasets.summary(made)
    if as_json:
        files = [str(path) for path in written]
        print_json({"schema": SCHEMA, "files": files, "splits": counts, "left_out": left_out})
        return
    table = Table("split", "tasks", "benchmarks", "accepted", "languages", box=None, pad_edge=False)
    for split, count in counts.items():
        languages = ", ".join(f"{name} {number}" for name, number in count["languages"].items())
        table.add_row(split, str(count["tasks"]), str(count["benchmarks"]), str(count["accepted"]), languages)
    console.print(table)
    for reason in left_out[:EXAMPLES]:
        stderr.print(f"left out: {reason}", soft_wrap=True, markup=False)
    if len(left_out) > EXAMPLES:
        stderr.print(f"and {len(left_out) - EXAMPLES} more", markup=False)
    console.print(f"wrote {', '.join(str(path) for path in written)}", soft_wrap=True, markup=False)


def _answers(folders: Sequence[Path], files: Sequence[Path]) -> dict[Path, Tested]:
    """The answers by task file; each names it relative to the folder that was checked."""
    found: dict[Path, Tested] = {}
    for file in files:
        for name, tested in read_answers(file).items():
            for folder in folders:
                if (folder / name).is_file():
                    found[(folder / name).resolve()] = tested
    return found
