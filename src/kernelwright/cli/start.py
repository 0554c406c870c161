"""The command that begins: init, which reads a repository and writes a first task file, or says where its time goes."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from kernelwright.cli.options import console, json_option, print_json, progress_display, run_async, sandbox_for
from kernelwright.commands import tool_path, words
from kernelwright.errors import KernelwrightError, UsageError
from kernelwright.execute import REPO, Workshop
from kernelwright.init import TaskDraft, adapt, draft, render
from kernelwright.init.building import RunDraft
from kernelwright.init.draft import language_of
from kernelwright.init.hot import PROFILE_FLAGS, HotFunction, functions_of, hot_functions, hot_kernels, profile
from kernelwright.outcome import SCHEMA
from kernelwright.sandbox import Bind, Job, JobResult, Limits, Sandbox
from kernelwright.source import SOURCE_SUFFIXES, find_functions
from kernelwright.task import TASK_FILE, Task, load_task
from kernelwright.trial import Progress

PROFILE_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Found:
    """What init made: the draft, the text of its task file, and why the trial run failed, where it did."""

    draft: TaskDraft
    text: str
    trouble: KernelwrightError | None


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
@click.option("--no-sandbox", is_flag=True, help="Run without isolation; for code that you trust.")
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
    no_sandbox: bool,
    as_json: bool,
) -> None:
    """Write a first task file, with comments, by reading the Makefile, the run target and what the program prints."""
    root, relative = _placed(file, repo)
    sandbox = None if no_run else sandbox_for(no_sandbox)
    if hot:
        if sandbox is None:
            raise UsageError("--hot runs the program", "either --hot or --no-run", "--hot alone")
        _print_hot(run_async(_hot(root, relative, sandbox, command)), as_json)
        return
    drafted = _with_run(run_async(_drafted(root, relative, kernel, sandbox)), command)
    target = (out or drafted.root / drafted.workdir / TASK_FILE).resolve()
    if target.exists() and not force:
        raise UsageError(f"{target} is there already", "a new file", "--force to overwrite it, or --out FILE")
    with progress_display() as progress:
        found = run_async(_proven(drafted, target, sandbox, progress))
    if as_json:
        print_json(
            {
                "schema": SCHEMA,
                "task_file": str(target),
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


async def _drafted(root: Path, file: str, kernel: str | None, sandbox: Sandbox | None) -> TaskDraft:
    if sandbox is None:
        return await draft(root, file, kernel)

    async def asked(argv: Sequence[str], folder: str) -> JobResult:
        binds = (Bind(root, REPO),)
        return await sandbox.run(Job(tuple(argv), f"{REPO}/{folder}", binds, {"PATH": tool_path()}, Limits(60.0)))

    return await draft(root, file, kernel, run=asked)


def _with_run(drafted: TaskDraft, command: str | None) -> TaskDraft:
    """The draft with one run of the user's own in place of those that the Makefile names."""
    if command is None:
        return drafted
    env = drafted.building.runs[0].env if drafted.building.runs else {}
    return replace(drafted, building=replace(drafted.building, runs=(RunDraft("first", command, env),)))


async def _proven(drafted: TaskDraft, target: Path, sandbox: Sandbox | None, progress: Progress) -> Found:
    """Write the draft, build and run it, and write it again as the run corrects it."""
    text = render(drafted, target)
    _write(target, text)
    if sandbox is None:
        return Found(drafted, text, None)
    try:
        task = load_task(target)
        async with Workshop(task, sandbox) as shop:
            progress("building the original")
            built = await shop.build_baseline()
            progress(f"running it: {task.shown[0].command}")
            result = await shop.run(built, task.shown[0])
    except KernelwrightError as trouble:
        return Found(drafted, text, trouble)
    settled = adapt(drafted, result.job.exit_code, result.text, result.job.wall_s)
    text = render(settled, target)
    _write(target, text)
    return Found(settled, text, None)


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written: {error.strerror}", "a folder that can be written", "--out FILE"
        ) from None


async def _hot(root: Path, file: str, sandbox: Sandbox, command: str | None) -> list[HotFunction]:
    """Where one run of the program that `file` belongs to spends its time."""
    data = (root / file).read_bytes()
    functions = find_functions(data, language_of(data, Path(file).suffix))
    if not functions:
        raise UsageError(
            f"{file} defines no function",
            "a source file of the program",
            "the file with the hot loop, or the one with main",
        )
    drafted = _with_run(await _drafted(root, file, functions[0].name, sandbox), command)
    target = root / drafted.workdir / TASK_FILE
    task = _without_file(render(drafted, target), target)
    sources = {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted((root / drafted.workdir).rglob("*"))
        if path.suffix in SOURCE_SUFFIXES and path.is_file()
    }
    known = functions_of(sources, task.language)
    if task.language == "cpp":
        task = task.model_copy(
            update={"build": task.build.model_copy(update={"flags": (*task.build.flags, *PROFILE_FLAGS)})}
        )
    async with Workshop(task, sandbox) as shop:
        built = await shop.build_baseline()
        run = task.shown[0]
        if task.language != "cpp":
            return hot_kernels((await shop.run(built, run, recorded=True)).kernels or (), known)

        async def execute(argv: Sequence[str], folder: str) -> JobResult:
            bind = Bind(built.slot.folder, REPO, writable=True)
            env = {"PATH": tool_path(), **run.env}
            limits = Limits(PROFILE_TIMEOUT_S, task.needs.memory_bytes, output_bytes=2**28)
            return await sandbox.run(Job(tuple(argv), folder, (bind,), env, limits))

        return hot_functions(
            await profile(execute, words(run.command, shop.arch, task.build.flags), shop.cwd), known, sources
        )


def _without_file(text: str, target: Path) -> Task:
    """The task of a text that is not written anywhere."""

    return Task.model_validate({**tomllib.loads(text), "path": target.resolve()})


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
