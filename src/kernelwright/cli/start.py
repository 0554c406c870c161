"""The command that begins: init, which reads a repository and writes a first task file, or says where its time goes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from kernelwright.cli.options import (
    Isolation,
    console,
    isolation_options,
    json_option,
    print_json,
    progress_display,
    run_async,
    sandbox_for,
)
from kernelwright.errors import UsageError
from kernelwright.init import running
from kernelwright.init.hot import HotFunction
from kernelwright.outcome import SCHEMA
from kernelwright.task import TASK_FILE


@click.command(short_help="Write a first task file by reading the repository.")
@click.option(
    "--file", "file", required=True, metavar="F", type=click.Path(path_type=Path), help="The source file of the region."
)
@click.option("--kernel", metavar="NAME", help="The kernel or function; may be left out where the file has one.")
@click.option(
    "--repo", type=click.Path(path_type=Path), help="The repository's root (default: the folder with .git above FILE)."
)
@click.option(
    "--out", type=click.Path(path_type=Path), help=f"The task file (default: {TASK_FILE} in the build's folder)."
)
@click.option("--run", "command", metavar="CMD", help="The run, in place of the Makefile's: as in './main 1024 10'.")
@click.option("--hot", is_flag=True, help="Profile the run instead, and say which functions are worth it.")
@click.option("--no-run", is_flag=True, help="Only read: neither build nor run anything.")
@click.option("--force", is_flag=True, help="Overwrite a task file that is there.")
@isolation_options
@json_option
def init(
    file: Path,
    kernel: str | None,
    repo: Path | None,
    out: Path | None,
    command: str | None,
    hot: bool,
    no_run: bool,
    force: bool,
    isolation: Isolation,
    as_json: bool,
) -> None:
    """Write a first task file, with comments, by reading the Makefile, the run target and what the program prints."""
    root, relative = _placed(file, repo)
    sandbox = None if no_run else sandbox_for(isolation)
    if hot:
        if sandbox is None:
            raise UsageError("--hot runs the program", "either --hot or --no-run", "--hot alone")
        _print_hot(run_async(running.hot(root, relative, sandbox, command)), as_json)
        return
    drafted = running.with_run(run_async(running.drafted(root, relative, kernel, sandbox)), command)
    target = (out or drafted.root / drafted.workdir / TASK_FILE).resolve()
    if target.exists() and not force:
        raise UsageError(f"{target} is there already", "a new file", "--force to overwrite it, or --out FILE")
    with progress_display() as progress:
        found = run_async(running.tried(drafted, target, sandbox, progress))
    if as_json:
        print_json(
            {
                "schema": SCHEMA,
                "task_file": str(target),
                "sandbox": sandbox.name if sandbox else None,
                "proven": found.draft.proven,
                "notes": list(found.draft.notes),
                "trouble": found.trouble.to_json()["error"] if found.trouble else None,
            }
        )
        return
    console.print(f"wrote {escape(str(target))}", soft_wrap=True)
    for note in found.draft.notes:
        console.print(f"look: {escape(note)}")
    if found.trouble is not None:
        console.print(f"[yellow]the trial run failed:[/] {escape(str(found.trouble))}")
    console.print(f"next: kernelwright check {escape(shlex.quote(str(target)))}", soft_wrap=True)


def _placed(file: Path, repo: Path | None) -> tuple[Path, str]:
    """The repository's root, and the file relative to it."""
    path = (repo / file if repo is not None and not file.is_absolute() and not file.exists() else file).resolve()
    if not path.is_file():
        raise UsageError(
            f"there is no file {file}", "a source file, relative to here or to --repo", "ls, to see its name"
        )
    root = repo.resolve() if repo is not None else _checkout(path)
    if not path.is_relative_to(root):
        raise UsageError(f"{file} does not lie in {root}", "a file of the repository", "--repo DIR")
    return root, str(path.relative_to(root))


def _checkout(path: Path) -> Path:
    return next((folder for folder in path.parents if (folder / ".git").exists()), path.parent)


def _print_hot(found: Sequence[HotFunction], as_json: bool) -> None:
    if as_json:
        data: list[dict[str, Any]] = [vars(function) for function in found]
        print_json({"schema": SCHEMA, "functions": data})
        return
    table = Table("share", "function", "where", "region?", box=None, pad_edge=False)
    for function in found:
        where = f"{function.file}:{function.line}" if function.file else ""
        table.add_row(
            f"{function.share:.1%}",
            escape(function.name),
            escape(where),
            "yes" if function.region else escape(function.note),
        )
    console.print(table)
    best = next((function for function in found if function.region and function.file), None)
    if best is not None and best.file is not None:
        name = best.name if re.fullmatch(r"\w+", best.name) else shlex.quote(best.name)
        console.print(
            f"next: kernelwright init --file {escape(shlex.quote(best.file))} --kernel {escape(name)}", soft_wrap=True
        )
