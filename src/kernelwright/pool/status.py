"""What can be read of a pool from outside: the driver's count and what each worker says of itself, as one snapshot, as
JSON or as Prometheus text.

Only files are read, nobody is asked: so it works for a pool on a cluster, and for one whose driver was killed. How it looks
in a terminal is the command line's.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kernelwright.errors import UsageError
from kernelwright.pool.board import ENDED, LIVE, SCHEMA, STAGES, STATUS, TIMES, WHERE, born, pools_home
from kernelwright.pool.folder import read_json

SILENT_S = 60.0
"""A driver on another machine that wrote nothing for this long is called silent: six of its beats."""
WORKER_STATES = ("idle", *STAGES, "aside", "gone")
DRIVER_STATES = ("alive", "ended", "gone", "silent")


def merged(folder: Path, counted: dict[str, Any] | None = None) -> dict[str, Any]:
    """The snapshot of a pool's folder as of now; `driver.state` says what is known of the driver's life.

    `counted` is the driver's count where the driver itself asks, in place of the file's. Where no driver ever counted,
    `jobs.done` is the number of results. Raises UsageError for a folder that is no pool's, or another version's.
    """
    data = counted or read_json(folder / STATUS) or _uncounted(folder)
    if data.get("schema") != SCHEMA:
        raise UsageError(f"{folder / STATUS} is of another version", f"schema {SCHEMA}", "that version's pool status")
    data["folder"] = str(folder.resolve())
    data["driver"]["state"] = driver_state(data)
    _add_workers(folder, data)
    return data


def driver_state(snapshot: Mapping[str, Any]) -> str:
    """alive; ended, by its own word; gone, without one; silent: on another machine, and not heard of for a minute."""
    driver = snapshot["driver"]
    if snapshot["ended"] is not None:
        return "ended"
    if driver["host"] is None or driver["host"] == socket.gethostname():
        alive = driver["pid"] is not None and born(driver["pid"]) == driver["born"] is not None
        return "alive" if alive else "gone"
    return "alive" if time.time() - snapshot["updated"] < SILENT_S else "silent"


def own_pools() -> list[Path]:
    """The folders of the pools that this user drives on this machine, and those whose drivers died since the last start."""
    return [_where(entry) for entry in sorted(pools_home().iterdir()) if entry.is_dir()]


def _where(entry: Path) -> Path:
    try:
        return Path((entry / WHERE).read_text(encoding="utf-8"))
    except OSError:
        return entry


def _uncounted(folder: Path) -> dict[str, Any]:
    """The snapshot of a folder that no driver has written its count to."""
    if not (folder / "results").is_dir():
        raise UsageError(
            f"{folder} is no pool's folder", "one with specs, results and workers in it", "kernelwright pool status"
        )
    done = sum(1 for _ in (folder / "results").glob("*.json"))
    return {
        "schema": SCHEMA,
        "pool": None,
        "driver": {"pid": None, "host": None, "born": None},
        "started": None,
        "updated": None,
        "ended": None,
        "wanted": None,
        "jobs": {**dict.fromkeys((*LIVE, *ENDED), 0), "done": done},
        "bounds_s": [],
        "kinds": {},
        "workers": {},
        "failures": [],
    }


def _add_workers(folder: Path, data: dict[str, Any]) -> None:
    """Put in what workers wrote of themselves. A driver on a cluster knows which jobs it has handed over, not which of them
    are being built or run now: that is their word."""
    known = data["workers"]
    for name, own in _all(folder, "workers"):
        counted = known.get(name, {})
        if not counted.get("jobs"):
            worker = {"jobs": int(own.get("job") is not None), "reason": None, **counted, **own}
            worker["state"] = _worker_state(worker)
            known[name] = worker
            _count(folder, data["jobs"], worker)
    for name, told in _all(folder, "aside"):
        worker = known.setdefault(name, {"job": None, "jobs": 0, "since": told.get("since"), "done": 0, "failed": 0})
        worker |= {"state": "aside", "reason": told.get("reason", "no reason was given")}
    for worker in known.values():
        if data["driver"]["state"] in ("ended", "gone") and worker["state"] != "aside":
            worker["state"] = "gone"  # none outlives its driver


def _worker_state(worker: Mapping[str, Any]) -> str:
    """Its own word, unless it is a process of this machine that is no more."""
    here = worker.get("host") == socket.gethostname()
    return "gone" if here and born(int(worker.get("pid", 0))) is None else str(worker.get("state"))


def _count(folder: Path, jobs: dict[str, int], worker: Mapping[str, Any]) -> None:
    """Count a worker's job at its stage. A job with a result is over, whatever a worker that died in between has left."""
    state, job = worker["state"], worker.get("job")
    if state in LIVE and job and jobs["queued"] > 0 and not (folder / "results" / f"{job}.json").exists():
        jobs["queued"] -= 1
        jobs[state] += 1


def _all(folder: Path, part: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((folder / part).glob("*.json")):
        data = read_json(path)
        if data is not None:
            yield path.stem, data


def prometheus(*snapshots: Mapping[str, Any]) -> str:
    """The same numbers in Prometheus' text format (its "Exposition formats" page, version 0.0.4), for a file that the node
    exporter's textfile collector reads, or any server's answer."""
    families = (
        ("jobs", "gauge", "Jobs that have not ended, by what they are at.", _live),
        ("ended_jobs_total", "counter", "Jobs that ended, by how; adopted: the result was there.", _ended),
        ("retries_total", "counter", "Tries that the machine failed and that were made again.", _retries),
        ("job_seconds", "histogram", "Seconds of the jobs that are done, by part and kind.", _seconds),
        ("worker_state", "gauge", "1 for what a worker is doing.", _worker_states),
        ("worker_jobs_total", "counter", "Tries of a worker, by how they ended.", _worker_jobs),
        ("driver_state", "gauge", "1 for what is known of the driver's life.", _driver_states),
        ("updated_timestamp_seconds", "gauge", "When the driver last wrote its count.", _updated),
    )
    lines = []
    for name, kind, words, samples in families:
        full = f"kernelwright_pool_{name}"
        lines += [f"# HELP {full} {words}", f"# TYPE {full} {kind}"]
        for snapshot in snapshots:
            for suffix, labels, value in samples(snapshot):
                pairs = ",".join(
                    f'{key}="{_escaped(text)}"' for key, text in {"folder": snapshot["folder"], **labels}.items()
                )
                lines.append(f"{full}{suffix}{{{pairs}}} {value!r}")
    return "\n".join(lines) + "\n"


Samples = Iterator[tuple[str, dict[str, str], float]]


def _live(snapshot: Mapping[str, Any]) -> Samples:
    for state in LIVE:
        yield "", {"state": state}, snapshot["jobs"][state]


def _ended(snapshot: Mapping[str, Any]) -> Samples:
    yield from (("", {"how": how}, snapshot["jobs"][how]) for how in ("done", "adopted", "failed"))


def _retries(snapshot: Mapping[str, Any]) -> Samples:
    yield "", {}, snapshot["jobs"]["retried"]


def _seconds(snapshot: Mapping[str, Any]) -> Samples:
    ends = [*(repr(float(bound)) for bound in snapshot["bounds_s"]), "+Inf"]
    for kind, times in snapshot["kinds"].items():
        for name in TIMES:
            labels, seen = {"kind": kind, "part": name.removesuffix("_s")}, 0
            for end, inside in zip(ends, times[name]["buckets"], strict=True):
                seen += inside
                yield "_bucket", {**labels, "le": end}, seen
            yield "_sum", labels, times[name]["sum_s"]
            yield "_count", labels, times[name]["count"]


def _worker_states(snapshot: Mapping[str, Any]) -> Samples:
    for name, worker in snapshot["workers"].items():
        yield from (("", {"worker": name, "state": each}, int(worker["state"] == each)) for each in WORKER_STATES)


def _worker_jobs(snapshot: Mapping[str, Any]) -> Samples:
    for name, worker in snapshot["workers"].items():
        yield from (("", {"worker": name, "how": how}, worker.get(how, 0)) for how in ("done", "failed"))


def _driver_states(snapshot: Mapping[str, Any]) -> Samples:
    yield from (("", {"state": each}, int(snapshot["driver"]["state"] == each)) for each in DRIVER_STATES)


def _updated(snapshot: Mapping[str, Any]) -> Samples:
    if snapshot["updated"] is not None:
        yield "", {}, snapshot["updated"]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
