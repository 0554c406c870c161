"""How a run of optimize begins and how it goes on: its options, and what is recorded of its beginning.

A run that goes on must be the run that began: the same task and the same text in its regions, the same policy and seed.
Its limits may change, and are recorded again. What a run does in between is the runner's work.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernelwright import runner
from kernelwright.errors import TaskError, UsageError
from kernelwright.policy import Policy
from kernelwright.policy.endpoint import ANSWER_TIMEOUT_S, Endpoint, Price
from kernelwright.policy.rules import RulesPolicy
from kernelwright.runner import Options
from kernelwright.source import region_spans
from kernelwright.store import Run, Store
from kernelwright.task import Task
from kernelwright.task_file import load_task
from kernelwright.tools import NAMES

LIMITS = {
    "attempts": "attempts",
    "parallel": "parallel",
    "max_calls": "max_calls",
    "time_limit": "time_limit_s",
    "max_tokens": "max_tokens",
    "max_cost": "max_cost_usd",
}
"""Options of the command that a run may go on with other values of, and what `Options` calls them."""
PARALLEL = 8
"""Attempts that are under way at once where nobody says how many; with a person who approves code, one."""
MEANING = ("policy", "model", "base_url", "temperature", "price", "without", "seed")
"""Options of the command that say what a run is."""


def begun(store: Store, task: Path | None, asked: dict[str, Any], sandbox: str) -> tuple[Run, Task, Options]:
    """A new run of `task` as it was asked for, with all that must still be so when it goes on."""
    if task is None:
        raise UsageError("no task is named", "a task file or its folder", "kernelwright optimize TASK")
    loaded, options = load_task(task), _options(asked)
    provenance = {
        "task": loaded.name,
        "fingerprint": loaded.fingerprint,
        "regions": hashes_of(loaded),
        "sandbox": sandbox,
        **revision_of(loaded),
    }
    policy_of(options)
    return store.create_run("optimize", str(loaded.path), runner.options_json(options), provenance), loaded, options


def found(
    store: Store, resume: str, task: Path | None, asked: dict[str, Any], given: Collection[str]
) -> tuple[Run, Task, Options]:
    """The run that `resume` names, its task, and its options with the limits that were `given` now.

    Raises UsageError for options that would make it another run, and for regions that have changed; TaskError for a task
    that has changed.
    """
    run = store.find(resume)
    if run.kind != "optimize":
        raise UsageError(f"run {run.id} is one of {run.kind}", "a run of optimize", "kernelwright runs")
    if other := [option(name) for name in MEANING if name in given]:
        raise UsageError(
            f"{', '.join(other)} beside --resume would make run {run.id} another run",
            f"limits alone: {', '.join(map(option, LIMITS))}",
            "a new run: kernelwright optimize TASK",
        )
    options = Options(**{**run.options, "tools": tuple(run.options["tools"])})
    if "max_cost" in given:
        _require_price(asked["max_cost"], (options.settings or {}).get("price"))
    loaded = load_task(task or run.task)
    _require_same(run, loaded)
    # What began under a person's eyes goes on under them.
    changed: dict[str, Any] = {LIMITS[name]: asked[name] for name in LIMITS if name in given}
    if "answer_timeout" in given and options.settings is not None:
        changed["settings"] = {**options.settings, "answer_timeout": asked["answer_timeout"]}
    return run, loaded, replace(options, **changed, approve=options.approve or asked["approve"])


def gone_on(store: Store, run: Run, options: Options, sandbox: str) -> Run:
    """Record the options that a run goes on with, and that there was no sandbox where any part of it had none."""
    worst = "none" if "none" in (sandbox, run.provenance.get("sandbox")) else sandbox
    again = replace(run, options=runner.options_json(options), provenance={**run.provenance, "sandbox": worst})
    store.amend(again)
    return again


def option(name: str) -> str:
    """A parameter's name as it is typed."""
    return "--" + name.replace("_", "-")


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
    _require_price(asked["max_cost"], asked["price"])
    settings = (
        {key: asked[key] for key in ("model", "base_url", "temperature", "price", "answer_timeout")}
        if policy == "endpoint"
        else None
    )
    return Options(
        policy,
        asked["attempts"],
        1 if asked["approve"] else asked["parallel"] or min(asked["attempts"], PARALLEL),
        asked["max_calls"],
        asked["time_limit"],
        asked["max_tokens"],
        asked["max_cost"],
        asked["seed"],
        tuple(name for name in NAMES if name not in asked["without"]),
        settings,
        asked["approve"],
    )


def _require_price(max_cost: float | None, price: object) -> None:
    if max_cost is not None and price is None:
        raise UsageError(
            "--max-cost cannot hold without a price", "--price IN OUT beside it", "--max-tokens, which always holds"
        )


def policy_of(options: Options) -> Policy:
    """The policy that the options name. A model gets its seed from each attempt's first messages, another one each time."""
    if options.policy == "rules":
        return RulesPolicy()
    settings = options.settings or {}
    price = Price(*settings["price"]) if settings.get("price") else None
    return Endpoint(
        settings["model"],
        settings["base_url"],
        temperature=settings.get("temperature"),
        price=price,
        timeout_s=settings.get("answer_timeout") or ANSWER_TIMEOUT_S,
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


def hashes_of(task: Task) -> dict[str, str]:
    """Region → SHA-256 of its text as it is in the repository now."""
    return {
        name: hashlib.sha256(span.text.encode(errors="surrogateescape")).hexdigest()
        for name, span in region_spans(task).items()
    }


def _require_same(run: Run, task: Task) -> None:
    if run.provenance.get("fingerprint") not in (None, task.fingerprint):
        raise TaskError(
            f"{task.path} has changed since run {run.id}",
            "the task that the run began with",
            "a new run: kernelwright optimize TASK",
        )
    now, then = hashes_of(task), run.provenance.get("regions")
    if then is not None and (changed := sorted(name for name in now if now[name] != then.get(name))):
        raise UsageError(
            f"the code of {', '.join(changed)} has changed since run {run.id} began",
            "the code that its attempts worked on",
            "that code again, or a new run: kernelwright optimize TASK",
        )
