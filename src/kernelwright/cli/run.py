"""Commands around a run: optimize, show, apply, runs, clean; and rules, the listing of what the embedded policy knows."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from kernelwright import runner
from kernelwright.candidates import patch_of, written_over
from kernelwright.cli import present
from kernelwright.cli.options import (
    Live,
    console,
    json_option,
    print_json,
    run_async,
    sandbox_for,
    sandbox_options,
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
from kernelwright.state import state_home
from kernelwright.store import Run, Store
from kernelwright.task import Task, load_task
from kernelwright.tools import NAMES
from kernelwright.trace import Candidate
from kernelwright.workspace import sweep

RUN = click.argument("run", default="last")


@click.command()
@click.argument("task", type=click.Path(path_type=Path), required=False)
@click.option("--policy", type=click.Choice(["rules", "endpoint"]), help="Default: rules, or endpoint with --model.")
@click.option("--model", help="A model's name at --base-url.")
@click.option("--base-url", help="An OpenAI-compatible server, as in http://127.0.0.1:8000/v1.")
@click.option("--temperature", type=click.FloatRange(0, 2), help="Of the model's sampling.")
@click.option("--price", nargs=2, type=click.FloatRange(min=0), metavar="IN OUT", help="USD per million tokens.")
@click.option("--attempts", default=1, type=click.IntRange(1, 1000), show_default=True, help="Rollouts.")
@click.option("--max-calls", default=8, type=click.IntRange(1, 1000), show_default=True, help="Benchmarks a rollout.")
@click.option("--time-limit", type=click.FloatRange(min=1), metavar="S", help="Seconds a rollout may take.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Tokens a rollout may use, priced or not.")
@click.option("--max-cost", type=click.FloatRange(min=0), metavar="USD", help="What a rollout may cost; needs --price.")
@click.option("--without", "without", multiple=True, type=click.Choice(NAMES[1:]), help="Leave a tool out.")
@click.option("--seed", default=0, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="A folder for copies of patch, candidate, trace, result.")
@click.option("--resume", metavar="RUN", help="Go on with a run that was interrupted (id prefix, or last).")
@click.option("--explain", is_flag=True, help="Only list what the rules policy knows.")
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
    """Search for a faster version of TASK's region, and prove it. Exit code 0 also where nothing faster was found."""
    if explain:
        _print_rules(as_json)
        return
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
        if out is not None:
            _make(out)
        result = _optimized(loaded, options, store, run, no_sandbox, keep_workspace)
    folder = _write_out(loaded, run, result, out)
    if as_json:
        print_json({**result, "files": str(folder)})
    else:
        present.optimized(console, result, folder)


def _optimized(task: Task, options: Options, store: Store, run: Run, no_sandbox: bool, keep: bool) -> dict[str, Any]:
    resume = f"kernelwright optimize --resume {run.id}"
    try:
        sandbox = sandbox_for(no_sandbox)
        stderr.print(f"run {run.id}: {escape(task.name)}, policy {escape(policy_of(options).name)}")
        with Live() as live:
            watcher = Watcher(live.stage, live.message, live.estimate)
            return run_async(runner.optimize(task, sandbox, policy_of(options), options, store, run, watcher, keep))
    except KeyboardInterrupt:
        store.set_status(run.id, "interrupted")
        raise Interrupted(f"run {run.id} was interrupted; what it found so far is kept", "it to end", resume) from None
    except (KernelwrightError, OSError):
        _failed(store, run, resume)
        raise


def _failed(store: Store, run: Run, resume: str) -> None:
    """Keep what a run found before it failed; one that never began leaves nothing. The failure itself is told later, also
    where the store cannot be written any more."""
    with contextlib.suppress(InfrastructureError):
        if store.attempts_begun(run.id):
            store.set_status(run.id, "failed")
            stderr.print(f"everything so far is kept; go on with: {resume}")
        else:
            store.delete(run.id)


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
    kept = state_home() / "runs" / run.id
    for folder in filter(None, (kept, out)):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            # A patch holds the bytes of the user's file; in JSON half a surrogate pair has an escape.
            errors = "surrogateescape" if name.endswith(".patch") else "backslashreplace"
            (folder / name).write_text(text, encoding="utf-8", errors=errors)
    return out or kept


def patch_name(task: Task) -> str:
    """File names have at most 255 bytes."""
    return task.name.encode()[:240].decode(errors="ignore") + ".patch"


@click.command()
@RUN
@click.option("--attempt", type=click.IntRange(min=1), help="Only this one.")
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
        result = store.result(found.id, "optimize")
    if as_json:
        print_json(
            {
                "schema": SCHEMA,
                "run": asdict(found),
                "result": result,
                "attempts": {str(n): [message.to_json() for message in each] for n, each in messages.items()},
            }
        )
        return
    console.print(f"[bold]run {found.id}[/], {found.kind} of {escape(found.task)}, {found.created}, {found.status}")
    for number, each in messages.items():
        console.rule(f"attempt {number + 1}")
        present.trace(console, each)
    if result is not None:
        console.rule("result")
        present.optimized(console, result, state_home() / "runs" / found.id)


@click.command()
@RUN
@click.option("--check", "only_check", is_flag=True, help="Say whether it applies, change nothing.")
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
        said = f"run {run.id} has no result: it is {run.status}"
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
        f"git apply -3 {shlex.quote(str(state_home() / 'runs' / run.id / patch_name(task)))}",
    )


@click.command()
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
                        **asdict(run),
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
            run.status,
            said,
        )
    console.print(table)


@click.command()
@click.argument("run", required=False)
@click.option("--all", "everything", is_flag=True, help="Every run.")
@json_option
def clean(run: str | None, everything: bool, as_json: bool) -> None:
    """Remove kept workspaces, and a RUN (or all) with its files."""
    if run is not None and everything:
        raise UsageError("both a run and --all are given", "one of them", "kernelwright clean --all")
    removed = [str(folder) for folder in sweep(state_home() / "work", kept=True)]
    deleted = []
    if run is not None or everything:
        with Store.open() as store:
            for each in store.runs() if everything else [store.find(run or "")]:
                store.delete(each.id)
                _remove_files(each.id)
                deleted.append(each.id)
    if as_json:
        print_json({"schema": SCHEMA, "workspaces": removed, "runs": deleted})
    else:
        console.print(f"removed {len(removed)} workspace(s) and {len(deleted)} run(s)")


def _remove_files(run: str) -> None:
    folder = state_home() / "runs" / run
    for file in folder.glob("*") if folder.is_dir() else ():
        file.unlink()
    if folder.is_dir():
        folder.rmdir()


@click.command()
@json_option
def rules(as_json: bool) -> None:
    """What the embedded policy knows: each rule with its precondition and its reason."""
    _print_rules(as_json)


def _print_rules(as_json: bool) -> None:
    if as_json:
        print_json({"schema": SCHEMA, "rules": listing()})
    else:
        click.echo(explain())
