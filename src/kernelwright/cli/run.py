"""The search: optimize; and rules, the listing of what the embedded policy knows."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.markup import escape

from kernelwright import runner
from kernelwright.approval import Approval, decisions_from
from kernelwright.cli import present
from kernelwright.cli.asking import TerminalPerson, require_terminal
from kernelwright.cli.begin import begun, found, gone_on, policy_of
from kernelwright.cli.kept import folder_of, patch_name, remove_files, worked_on
from kernelwright.cli.options import (
    Isolation,
    Live,
    Number,
    console,
    json_option,
    kept_workspaces,
    print_json,
    run_async,
    sandbox_of_pool,
    sandbox_options,
    stderr,
)
from kernelwright.errors import InfrastructureError, Interrupted, KernelwrightError, UsageError
from kernelwright.outcome import SCHEMA
from kernelwright.policy.rules.explain import explain, listing
from kernelwright.pool.config import load_config
from kernelwright.pool.opening import pool_of
from kernelwright.runner import Options, Watcher
from kernelwright.state import replace_text
from kernelwright.store import Run, Store
from kernelwright.task import Task
from kernelwright.tools import NAMES


@click.command(short_help="Search for a faster version, and prove it.")
@click.argument("task", type=click.Path(path_type=Path), required=False)
@click.option("--policy", type=click.Choice(["rules", "endpoint"]), help="Default: rules, or endpoint with --model.")
@click.option("--model", metavar="NAME", help="A model's name at --base-url.")
@click.option("--base-url", metavar="URL", help="An OpenAI-compatible server, as in http://127.0.0.1:8000/v1.")
@click.option("--temperature", type=Number(0, 2), help="Of the model's sampling (default: the server's).")
@click.option(
    "--answer-timeout",
    type=Number(min=1),
    metavar="S",
    help="Seconds to wait for the model's next words (default: 600).",
)
@click.option("--price", nargs=2, type=Number(min=0), metavar="IN OUT", help="USD per million tokens read and written.")
@click.option("--attempts", default=1, type=click.IntRange(1, 1000), show_default=True, help="Rollouts to make.")
@click.option(
    "--parallel",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Attempts under way at once (default: all, up to 8).",
)
@click.option(
    "--pool",
    "pool_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Run tools and the proof where this configuration says: see pool --help.",
)
@click.option(
    "--max-calls",
    default=8,
    type=click.IntRange(1, 1000),
    show_default=True,
    help="Benchmarks that one rollout may make.",
)
@click.option("--time-limit", type=Number(min=1), metavar="S", help="Seconds that one rollout may take.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Tokens that one rollout may use.")
@click.option("--max-cost", type=Number(min=0), metavar="USD", help="What one rollout may cost; needs --price.")
@click.option(
    "--without", "without", multiple=True, type=click.Choice(NAMES[1:]), help="Leave a tool out; may be repeated."
)
@click.option("--seed", default=0, show_default=True, help="Of the first rollout; each further one adds 1.")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A folder for copies of patch, candidate, trace, result.",
)
@click.option(
    "--resume",
    metavar="RUN",
    help="Go on with a RUN (an id's beginning, or last): its options, with the limits given now.",
)
@click.option("--approve", is_flag=True, help="Ask you about each piece of generated code before it is compiled.")
@sandbox_options
@json_option
@click.pass_context
def optimize(
    context: click.Context,
    /,
    task: Path | None,
    out: Path | None,
    resume: str | None,
    pool_file: Path | None,
    isolation: Isolation,
    keep_workspace: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Search for a faster version of the region of TASK (a task file or its folder), and prove it.

    What is found is kept as a run: see show, apply and runs. Exit code 0 also where nothing faster was found.
    """
    if out is not None:
        _make(out)
    if asked["approve"]:
        require_terminal()
    with kept_workspaces(keep_workspace), Store.open() as store:
        if resume is None:
            run, loaded, options = begun(store, task, asked, isolation.sandbox)
        else:
            given = {name for name in asked if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
            run, loaded, options = found(store, resume, task, asked, given)
            if options.approve:
                require_terminal()
        with worked_on(run):
            result = _optimized(loaded, options, store, run, isolation, keep_workspace, pool_file)
        folder = _write_out(loaded, store, run, result, out)
    if as_json:
        print_json({**result, "files": str(folder)})
    else:
        present.optimized(console, result, folder)


def _optimized(
    task: Task, options: Options, store: Store, run: Run, isolation: Isolation, keep: bool, pool_file: Path | None
) -> dict[str, Any]:
    resume = f"kernelwright optimize --resume {run.id}{isolation.words}"
    try:
        store.set_status(run.id, "running")
        return _searched(task, options, store, run, isolation, keep, pool_file)
    except (KeyboardInterrupt, Interrupted):
        store.set_status(run.id, "interrupted")
        raise Interrupted(f"run {run.id} was interrupted; what it found so far is kept", "it to end", resume) from None
    except (KernelwrightError, OSError):
        _failed(store, run, resume)
        raise


def _searched(
    task: Task, options: Options, store: Store, run: Run, isolation: Isolation, keep: bool, pool_file: Path | None
) -> dict[str, Any]:
    config = load_config(pool_file) if pool_file is not None else None
    sandbox = sandbox_of_pool(config, isolation)
    name = sandbox.name if sandbox is not None else config.sandbox if config is not None else "auto"
    run = gone_on(store, run, options, name)
    stderr.print(f"run {run.id}: {escape(task.name)}, policy {escape(policy_of(options).name)}")
    with Live() as live, _approval(options, store, run, live) as approval:
        watcher = Watcher(live.stage, live.message, live.estimate)

        async def search() -> dict[str, Any]:
            async with pool_of(config, sandbox, None, live.stage, approval, keep) as pool:
                return await runner.optimize(task, pool, policy_of(options), options, store, run, watcher, approval)

        return run_async(search())


@contextlib.contextmanager
def _approval(options: Options, store: Store, run: Run, live: Live) -> Iterator[Approval | None]:
    """The person at the terminal, with what was decided in this run before."""
    if not options.approve:
        yield None
        return
    with TerminalPerson(live.paused) as person:
        decided = decisions_from(store.result(run.id, "approvals"))
        yield Approval(person, decided, lambda decisions: store.save_result(run.id, "approvals", decisions))


def _failed(store: Store, run: Run, resume: str) -> None:
    """Keep what a run found before it failed; one that never began leaves nothing. The failure itself is told later, also
    where the store cannot be written any more."""
    with contextlib.suppress(InfrastructureError):
        if store.attempts_begun(run.id):
            store.set_status(run.id, "failed")
            stderr.print(f"everything so far is kept; go on with: {resume}")
        else:
            store.delete(run.id)
            remove_files(run)


def _make(folder: Path) -> None:
    """Before the search, so that it is not lost on a folder that cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {folder} cannot be made: {error.strerror}", "a folder", "another --out") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--out {folder} cannot be written", "a folder that this user may write", "another --out")


def _write_out(task: Task, store: Store, run: Run, result: dict[str, Any], out: Path | None) -> Path:
    """The run's files in the state folder, and copies where the user asked for them."""
    files = {"result.json": json.dumps(result, indent=1, ensure_ascii=False) + "\n"}
    if result["candidate"] is not None:
        files["candidate.json"] = json.dumps(result["candidate"], indent=1, ensure_ascii=False) + "\n"
    if result["patch"]:
        files[patch_name(task)] = result["patch"]
    for attempt in store.attempts_begun(run.id):
        lines = [json.dumps(message.to_json(), ensure_ascii=False) for message in store.messages(run.id, attempt)]
        files[f"trace-{attempt}.jsonl"] = "\n".join(lines) + "\n"
    kept = folder_of(run)
    for folder in filter(None, (kept, out)):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            # A patch holds the bytes of the user's file; in JSON half a surrogate pair has an escape.
            errors = "surrogateescape" if name.endswith(".patch") else "backslashreplace"
            replace_text(folder / name, text, errors=errors)
    return out or kept


@click.command(short_help="List what the embedded policy knows.")
@click.option("--explain", "explained", is_flag=True, help="Each rule with its precondition and its reason.")
@json_option
def rules(explained: bool, as_json: bool) -> None:
    """What the embedded policy knows: the rules by name; with --explain when each is tried, why, what it assumes."""
    if as_json:
        print_json({"schema": SCHEMA, "rules": listing()})
    elif explained:
        click.echo(explain())
    else:
        click.echo("\n".join(map(present.rule, listing())))
