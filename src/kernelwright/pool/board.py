"""What a pool knows of its jobs: how many are at each stage, which worker does what, and how long it all takes.

A driver's board lives in its event loop, is told of every transition, and is written to FOLDER/status.json for others to
read (`status`). Nothing here grows with the number of jobs that are done: times are kept as sums and small histograms, and a
job is forgotten once it has ended. Who runs what, and when something is tried again, is the pools' to say.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kernelwright.errors import KernelwrightError
from kernelwright.pool import Finished, JobSpec, Stage, Times
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.spread import BOUNDS_S, Spread
from kernelwright.state import replace_text, scratch_folder, state_home
from kernelwright.workspace import sweep, to_its_end

State = Literal["queued"] | Stage

SCHEMA = 1
TIMES = tuple(Times.__dataclass_fields__)
STAGES: tuple[Stage, ...] = ("running", "building", "waiting", "working")
"""The furthest first; working: begun, and neither holding a core or device nor waiting for one."""
LIVE: tuple[State, ...] = ("queued", *reversed(STAGES))
ENDED = ("done", "adopted", "failed", "retried")
FAILURES_KEPT = 20
WRITE_S = 0.5
"""status.json is written at most once in this time, ..."""
BEAT_S = 10.0
"""... and at least once in this, also where nothing changes: on another machine its age is all that tells of our life."""
STATUS = "status.json"
WHERE = "where"


@dataclass(slots=True)
class _Job:
    """A job that has not ended."""

    kind: str
    state: State = "queued"
    worker: str | None = None


@dataclass
class _Worker:
    """A worker as the driver knows it: the stages of the jobs that it has now, and what became of others."""

    jobs: dict[str, Stage] = field(default_factory=dict)
    state: str = "idle"
    since: float = 0.0
    done: int = 0
    failed: int = 0
    reason: str | None = None
    """Why it was put aside."""

    def look(self, now: float) -> None:
        """Where it has several jobs, its state is that of the furthest."""
        held = self.jobs.values()
        state: str = next((stage for stage in STAGES if stage in held), "idle")
        state = "aside" if self.reason is not None and not self.jobs else state
        if state != self.state:
            self.state, self.since = state, now

    def to_json(self) -> dict[str, Any]:
        job = next((job for job, stage in self.jobs.items() if stage == self.state), None)
        told = {key: getattr(self, key) for key in ("state", "since", "done", "failed", "reason")}
        return {**told, "job": job, "jobs": len(self.jobs)}


class Board:
    """The counts of one driver. Every method is a transition; none waits, none raises for a job that it does not know."""

    def __init__(self, pool: str, folder: PoolFolder, workers: Iterable[str] = ()) -> None:
        """`pool` is the pool's kind, as in its configuration; `workers` are those known before they have a job."""
        self.pool, self.folder = pool, folder
        self.started = time.time()
        self.counts: dict[str, int] = dict.fromkeys((*LIVE, *ENDED), 0)
        self.wanted: int | None = None
        """How many jobs there are to be in all, where the driver knows; not all of them need be queued yet."""
        self._ended: float | None = None
        self._jobs: dict[str, _Job] = {}
        self._workers = {name: _Worker(since=self.started) for name in workers}
        self._spreads: dict[str, dict[str, Spread]] = {}
        self._failures: deque[dict[str, Any]] = deque(maxlen=FAILURES_KEPT)
        self._changed = asyncio.Event()

    def aside(self, name: str, reason: str) -> None:
        """A worker gets no more jobs."""
        worker = self._known(name)
        worker.reason = reason
        worker.look(time.time())
        self._change()

    def queued(self, spec: JobSpec) -> None:
        self._leave(spec.id)
        self._jobs[spec.id] = _Job(spec.kind)
        self.counts["queued"] += 1
        self._change()

    def begun(self, spec: JobSpec, worker: str) -> None:
        """A worker has the job. It works until a stage says otherwise."""
        job = self._jobs.get(spec.id) or _Job(spec.kind)
        self._leave(spec.id)
        self._jobs[spec.id] = job
        job.worker = worker
        self._enter(spec.id, job, "working")

    def stage(self, job_id: str, stage: Stage) -> None:
        job = self._jobs.get(job_id)
        if job is not None and job.worker is not None and job.state != stage:
            self.counts[job.state] -= 1
            self._enter(job_id, job, stage)

    def done(self, finished: Finished) -> None:
        """A job has its result; where it was never queued here, that was found."""
        job = self._leave(finished.id)
        if job is None:
            self.adopted(finished)
            return
        self.counts["done"] += 1
        self._known(finished.worker).done += 1
        self._add_times(finished)
        self._change()

    def adopted(self, finished: Finished) -> None:
        """A job's result was there already. Its times were another driver's, and are not added to ours."""
        self._leave(finished.id)
        self.counts["adopted"] += 1
        self._change()

    def retried(self, spec: JobSpec, error: KernelwrightError) -> None:
        """The machine failed a job, which is queued again."""
        self._blame(self._leave(spec.id))
        self._jobs[spec.id] = _Job(spec.kind)
        self.counts["queued"] += 1
        self.counts["retried"] += 1
        self._remember(spec, error, last=False)

    def failed(self, spec: JobSpec, error: KernelwrightError) -> None:
        """The machines failed a job for the last time."""
        self._blame(self._leave(spec.id))
        self.counts["failed"] += 1
        self._remember(spec, error, last=True)

    def dropped(self, job_id: str) -> None:
        """Nobody wants the job any more."""
        if self._leave(job_id) is not None:
            self._change()

    def snapshot(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "schema": SCHEMA,
            "pool": self.pool,
            "folder": str(self.folder.path),
            "driver": {"pid": os.getpid(), "host": socket.gethostname(), "born": born(os.getpid())},
            "started": self.started,
            "updated": time.time(),
            "ended": self._ended,
            "wanted": self.wanted,
            "jobs": dict(self.counts),
            "bounds_s": list(BOUNDS_S),
            "kinds": {
                kind: {"done": times["total_s"].count, **{name: spread.to_json() for name, spread in times.items()}}
                for kind, times in sorted(self._spreads.items())
            },
            "workers": {name: worker.to_json() for name, worker in sorted(self._workers.items())},
            "failures": list(self._failures),
        }

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Keep status.json up to date meanwhile, and let this machine's `pool status` know of the folder."""
        with announced(self.folder.path):
            await self._write()
            writing = asyncio.create_task(self._write_on_change())
            try:
                yield
            finally:
                writing.cancel()
                await asyncio.wait([writing])
                self._ended = time.time()
                await self._write()

    async def _write_on_change(self) -> None:
        while True:
            await asyncio.sleep(WRITE_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BEAT_S - WRITE_S):
                    await self._changed.wait()
            self._changed.clear()
            await self._write()

    async def _write(self) -> None:
        """A disk that does not take the status will not take results either, and those say so."""
        text = json.dumps(self.snapshot())
        with contextlib.suppress(OSError):
            await to_its_end(replace_text, self.folder.path / STATUS, text)

    def _known(self, name: str) -> _Worker:
        return self._workers.setdefault(name, _Worker(since=time.time()))

    def _enter(self, job_id: str, job: _Job, stage: Stage) -> None:
        job.state = stage
        self.counts[stage] += 1
        worker = self._known(job.worker or "")
        worker.jobs[job_id] = stage
        worker.look(time.time())
        self._change()

    def _leave(self, job_id: str) -> _Job | None:
        """Take a job out of the state that it is in."""
        job = self._jobs.pop(job_id, None)
        if job is not None:
            self.counts[job.state] -= 1
            if job.worker is not None:
                worker = self._known(job.worker)
                worker.jobs.pop(job_id, None)
                worker.look(time.time())
        return job

    def _blame(self, job: _Job | None) -> None:
        if job is not None and job.worker is not None:
            self._known(job.worker).failed += 1

    def _remember(self, spec: JobSpec, error: KernelwrightError, last: bool) -> None:
        self._failures.append({"job": spec.id, "kind": spec.kind, "what": error.what, "last": last, "at": time.time()})
        self._change()

    def _add_times(self, finished: Finished) -> None:
        spreads = self._spreads.setdefault(finished.kind, {name: Spread() for name in TIMES})
        for name in TIMES:
            spreads[name].add(getattr(finished.times, name))

    def _change(self) -> None:
        self._changed.set()


def born(pid: int) -> int | None:
    """When a process of this machine began, in clock ticks since boot (proc(5)): with it, a number that was given to a
    later process is not taken for this one. None where there is no such process."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def pools_home() -> Path:
    """Where local pools lie, and a note of each pool that this user drives elsewhere; each is locked by its driver."""
    home = state_home() / "pools"
    home.mkdir(exist_ok=True)
    return home


@contextmanager
def announced(folder: Path) -> Iterator[None]:
    """A note in the state folder that a pool is driven in `folder`, until the end or our death. A pool that lies there
    itself needs none. What drivers that were killed left there is removed."""
    home = pools_home()
    sweep(home)
    if folder.resolve().parent == home:
        yield
        return
    with scratch_folder(home) as note:
        (note / WHERE).write_text(str(folder.resolve()), encoding="utf-8")
        yield
