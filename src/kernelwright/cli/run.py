"""The search: optimize; and rules, the listing of what the embedded policy knows."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from kernelwright import runner
from kernelwright.cli import present
from kernelwright.cli.kept import folder_of, patch_name, remove_files, worked_on
from kernelwright.cli.options import (
    Live,
    Number,
    console,
    json_option,
    print_json,
    run_async,
    sandbox_for,
    sandbox_options,
    say_kept,
    stderr,
)
from kernelwright.errors import InfrastructureError, Interrupted, KernelwrightError, TaskError, UsageError
from kernelwright.outcome import SCHEMA
from kernelwright.policy import Policy
from kernelwright.policy.endpoint import Endpoint, Price
from kernelwright.policy.rules import RulesPolicy
from kernelwright.policy.rules.explain import explain, listing
from kernelwright.runner import Options, Watcher
from kernelwright.source import region_spans
from kernelwright.store import Run, Store
from kernelwright.task import Task, load_task
from kernelwright.tools import NAMES


@click.command(short_help="Search for a faster version, and prove it.")
@click.argument("task", type=click.Path(path_type=Path), required=False)
@click.option("--policy", type=click.Choice(["rules", "endpoint"]), help="Default: rules, or endpoint with --model.")
@click.option("--model", metavar="NAME", help="A model's name at --base-url.")
@click.option("--base-url", metavar="URL", help="An OpenAI-compatible server, as in http://127.0.0.1:8000/v1.")
@click.option("--temperature", type=Number(0, 2), help="Of the model's sampling (default: the server's).")
@click.option("--price", nargs=2, type=Number(min=0), metavar="IN OUT", help="USD per million tokens read and written.")
@click.option("--attempts", default=1, type=click.IntRange(1, 1000), show_default=True, help="Rollouts to make.")
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
@click.option("--resume", metavar="RUN", help="Go on with a RUN (an id's beginning, or last) and its options.")
@click.option("--explain", is_flag=True, help="Search nothing; list what the rules policy knows.")
@sandbox_options
@json_option
def optimize(
    task: Path | None,
    out: Path | None,
    resume: str | None,
    explain: bool,
    no_sandbox: bool,
    keep_workspace: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Search for a faster version of the region of TASK (a task file or its folder), and prove it.

    What is found is kept as a run: see show, apply and runs. Exit code 0 also where nothing faster was found.
    """
    if explain:
        _print_rules(as_json)
        return
    if out is not None:
        _make(out)
    with Store.open() as store:
        if resume is not None:
            run = store.find(resume)
            if run.kind != "optimize":
                raise UsageError(f"run {run.id} is one of {run.kind}", "a run of optimize", "kernelwright runs")
            options = Options(**{**run.options, "tools": tuple(run.options["tools"])})
            loaded = load_task(task or run.task)
            _require_same(run, loaded)
        else:
            if task is None:
                raise UsageError("no task is named", "a task file or its folder", "kernelwright optimize TASK")
            loaded, options = load_task(task), _options(asked)
            region_spans(loaded)
            policy_of(options)
            run = store.create_run(
                "optimize",
                str(loaded.path),
                runner.options_json(options),
                {"task": loaded.name, "fingerprint": loaded.fingerprint, **revision_of(loaded)},
            )
        with worked_on(run):
            result = _optimized(loaded, options, store, run, no_sandbox, keep_workspace)
    folder = _write_out(loaded, run, result, out)
    say_kept(keep_workspace)
    if as_json:
        print_json({**result, "files": str(folder)})
    else:
        present.optimized(console, result, folder)


def _optimized(task: Task, options: Options, store: Store, run: Run, no_sandbox: bool, keep: bool) -> dict[str, Any]:
    resume = f"kernelwright optimize --resume {run.id}"
    try:
        store.set_status(run.id, "running")
        return _searched(task, options, store, run, no_sandbox, keep)
    except KeyboardInterrupt:
        store.set_status(run.id, "interrupted")
        raise Interrupted(f"run {run.id} was interrupted; what it found so far is kept", "it to end", resume) from None
    except (KernelwrightError, OSError):
        _failed(store, run, resume)
        raise


def _searched(task: Task, options: Options, store: Store, run: Run, no_sandbox: bool, keep: bool) -> dict[str, Any]:
    sandbox = sandbox_for(no_sandbox)
    stderr.print(f"run {run.id}: {escape(task.name)}, policy {escape(policy_of(options).name)}")
    with Live() as live:
        watcher = Watcher(live.stage, live.message, live.estimate)
        return run_async(runner.optimize(task, sandbox, policy_of(options), options, store, run, watcher, keep))


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


def _options(asked: dict[str, Any]) -> Options:
    model, base_url = asked["model"], asked["base_url"]
    policy = asked["policy"] or ("endpoint" if model or base_url else "rules")
    if policy == "endpoint" and not (model and base_url):
        raise UsageError(
            "the endpoint policy needs a model and a server",
            "--model NAME and --base-url URL",
            "--policy rules, which needs neither",
        )
    if policy == "rules" and (model or base_url):
        raise UsageError("the rules policy has no model", "no --model and no --base-url", "--policy endpoint")
    if asked["max_cost"] is not None and asked["price"] is None:
        raise UsageError(
            "--max-cost cannot hold without a price", "--price IN OUT beside it", "--max-tokens, which always holds"
        )
    settings = (
        {key: asked[key] for key in ("model", "base_url", "temperature", "price")} if policy == "endpoint" else None
    )
    return Options(
        policy,
        asked["attempts"],
        asked["max_calls"],
        asked["time_limit"],
        asked["max_tokens"],
        asked["max_cost"],
        asked["seed"],
        tuple(name for name in NAMES if name not in asked["without"]),
        settings,
    )


def policy_of(options: Options) -> Policy:
    """The policy that the options name."""
    if options.policy == "rules":
        return RulesPolicy()
    settings = options.settings or {}
    price = Price(*settings["price"]) if settings.get("price") else None
    return Endpoint(
        settings["model"], settings["base_url"], temperature=settings.get("temperature"), seed=options.seed, price=price
    )


def revision_of(task: Task) -> dict[str, Any]:
    """The git revision of the task's repository and whether it was dirty; empty where it is no checkout."""

    def git(*words: str) -> str | None:
        # Without the locks, status does not write what it learned into the user's index.
        command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(task.root), *words]
        done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape")
        return done.stdout if done.returncode == 0 else None

    try:
        revision, status = git("rev-parse", "HEAD"), git("status", "--porcelain", "--untracked-files=no", "--", ".")
    except FileNotFoundError:
        return {}
    return {"revision": revision.strip(), "dirty": bool(status)} if revision else {}


def _require_same(run: Run, task: Task) -> None:
    if run.provenance.get("fingerprint") not in (None, task.fingerprint):
        raise TaskError(
            f"{task.path} has changed since run {run.id}",
            "the task that the run began with",
            "a new run: kernelwright optimize TASK",
        )


def _write_out(task: Task, run: Run, result: dict[str, Any], out: Path | None) -> Path:
    """The run's files in the state folder, and copies where the user asked for them."""
    files = {"result.json": json.dumps(result, indent=1, ensure_ascii=False) + "\n"}
    if result["candidate"] is not None:
        files["candidate.json"] = json.dumps(result["candidate"], indent=1, ensure_ascii=False) + "\n"
    if result["patch"]:
        files[patch_name(task)] = result["patch"]
    with Store.open() as store:
        for attempt in store.attempts_begun(run.id):
            lines = [json.dumps(message.to_json(), ensure_ascii=False) for message in store.messages(run.id, attempt)]
            files[f"trace-{attempt}.jsonl"] = "\n".join(lines) + "\n"
    kept = folder_of(run)
    for folder in filter(None, (kept, out)):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            # A patch holds the bytes of the user's file; in JSON half a surrogate pair has an escape.
            errors = "surrogateescape" if name.endswith(".patch") else "backslashreplace"
            (folder / name).write_text(text, encoding="utf-8", errors=errors)
    return out or kept


@click.command(short_help="List what the embedded policy knows.")
@json_option
def rules(as_json: bool) -> None:
    """What the embedded policy knows: each rule with its precondition and its reason."""
    _print_rules(as_json)


def _print_rules(as_json: bool) -> None:
    if as_json:
        print_json({"schema": SCHEMA, "rules": listing()})
    else:
        click.echo(explain())
