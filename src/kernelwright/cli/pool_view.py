"""How a pool looks in a terminal: its driver, its counts, its times and its workers; nothing computed here."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelwright.measure import seconds
from kernelwright.pool.board import ENDED, LIVE, TIMES

DRIVERS = {
    "alive": ("running", "green"),
    "ended": ("ended", "dim"),
    "gone": ("its driver is gone: the counts are the last that it wrote", "bold red"),
    "silent": ("nothing was heard of its driver for a minute", "yellow"),
}
STATES = {
    "running": "green",
    "building": "cyan",
    "waiting": "yellow",
    "aside": "bold red",
    "gone": "dim",
    "idle": "dim",
}
WORKERS_SHOWN = 40
"""Those at work come first."""


def pools(snapshots: Sequence[Mapping[str, Any]]) -> RenderableType:
    if not snapshots:
        return Text("no pool of yours runs on this machine")
    return Group(*(part for snapshot in snapshots for part in _pool(snapshot)))


def counts(snapshot: Mapping[str, Any]) -> str:
    """On one line: what there is of each, and always what is done."""
    jobs = snapshot["jobs"]
    of = f" of {snapshot['wanted']}" if snapshot["wanted"] is not None else ""
    said = [f"{jobs['done'] + jobs['adopted']}{of} done" + (f" ({jobs['adopted']} before)" if jobs["adopted"] else "")]
    said += [f"{jobs[state]} {state}" for state in (*reversed(LIVE), *ENDED[2:]) if jobs[state]]
    return ", ".join(said)


def _pool(snapshot: Mapping[str, Any]) -> list[RenderableType]:
    said, style = DRIVERS[snapshot["driver"]["state"]]
    head = Text.assemble((snapshot["pool"] or "pool", "bold"), f" {snapshot['folder']}  ", (said, style))
    if snapshot["driver"]["pid"] is not None:
        head.append(f"  pid {snapshot['driver']['pid']} on {snapshot['driver']['host']}", "dim")
        head.append(f", {_ago(snapshot['updated'])} ago", "dim")
    parts: list[RenderableType] = [head, Text(counts(snapshot))]
    if snapshot["kinds"]:
        parts.append(_times(snapshot["kinds"]))
    if snapshot["workers"]:
        parts.append(_workers(snapshot["workers"]))
    parts += [
        Text(f"{'failed' if each['last'] else 'tried again'}: {each['kind']} {each['job'][:8]}: {each['what']}", "red")
        for each in snapshot["failures"][-3:]
    ]
    return parts


def _times(kinds: Mapping[str, Mapping[str, Any]]) -> Table:
    """Median and the time that 95 % do not pass, of each part that any job had."""
    parts = [name for name in TIMES if any(times[name]["max_s"] > 0 for times in kinds.values())]
    table = Table("kind", "done", *(name.removesuffix("_s") for name in parts), box=None, pad_edge=False)
    for kind, times in kinds.items():
        cells = (f"{seconds(times[name]['median_s'])} / {seconds(times[name]['p95_s'])}" for name in parts)
        table.add_row(kind, str(times["done"]), *cells)
    return table


def _workers(workers: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table("worker", "state", "for", "job", "done", "failed", "", box=None, pad_edge=False)
    order = list(STATES)
    listed = sorted(workers.items(), key=lambda item: order.index(item[1]["state"]) if item[1]["state"] in order else 0)
    for name, worker in listed[:WORKERS_SHOWN]:
        others = f" +{worker['jobs'] - 1}" if worker["jobs"] > 1 else ""
        table.add_row(
            Text(name),
            Text(worker["state"], STATES.get(worker["state"], "")),
            _ago(worker["since"]) if worker.get("since") else "",
            (worker["job"] or "")[:8] + others,
            str(worker["done"]),
            str(worker["failed"]),
            Text(worker["reason"] or ""),
        )
    if len(listed) > WORKERS_SHOWN:
        table.add_row(f"and {len(listed) - WORKERS_SHOWN} more")
    return table


def _ago(moment: float) -> str:
    passed = max(0, int(time.time() - moment))
    return f"{passed} s" if passed < 120 else f"{passed // 60} min" if passed < 7200 else f"{passed // 3600} h"
