"""The far side of a cluster's pool: one process for each worker, which runs the jobs that it is handed one after another.

`run_spec` is all that travels. The process keeps one `Worker` in an event loop of its own, so that what one job built is
there for the next, and says in the pool's folder what it is doing. A worker that is sick, or that failed too often, is put
aside: it hands every job back, slowly, so that a worker which is always free does not swallow the queue. Which machine has
which worker is the driver's business (`cluster`).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import errno
import hashlib
import json
import os
import re
import socket
import threading
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from kernelwright.errors import InfrastructureError, JobFault, JobLate, KernelwrightError
from kernelwright.pool import JobSpec, Stage, error_to_json
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.job import finished
from kernelwright.pool.work import Worker
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.state import replace_text

WRITE_S = 0.5
"""A worker's word is written at most once in this time."""
HOLD_S = (0.5, 8.0)
"""How long a worker that is put aside keeps a job before it hands it back: at first, and at most."""
GRACE_S = 120.0
"""Seconds beyond a job's deadline after which its process ends itself: its loop hangs."""
LANES = 10_000
"""More workers than one pool has on a machine."""
GIVEN = "KERNELWRIGHT_GIVEN_DEVICES"
"""The accelerators that the scheduler gave to the block, as CUDA_VISIBLE_DEVICES was before workers were made."""

T = TypeVar("T")


class Settings(TypedDict):
    """What a worker must know of the pool's configuration."""

    sandbox: str
    aside_after: int
    lanes: list[str | None]
    """What each worker of a node has: an accelerator's name, or None for the cores."""
    by_index: bool
    """The names count the accelerators that the scheduler gave, from 0."""
    once: bool
    """Each job has a process of its own, which ends with it."""


class Answer(TypedDict, total=False):
    """One of the three is there."""

    worker: str
    finished: dict[str, Any]
    failed: dict[str, str]
    """The machine's fault: an InfrastructureError."""
    aside: str
    """The worker takes no jobs, and why. Nothing was tried."""


def run_spec(folder: str, spec: Mapping[str, Any], settings: Settings, tries: int) -> Answer:
    """Run a job in this process' worker, in the try of that number. A result that is in the folder already is the result."""
    process = _process(Path(folder), settings)
    try:
        return process.answer(JobSpec.from_json(spec), tries)
    finally:
        if settings["once"]:
            process.close()


_PROCESS: dict[Path, _Process] = {}
"""The one worker of this process, once it had its first job."""


def _process(folder: Path, settings: Settings) -> _Process:
    if folder not in _PROCESS:
        _PROCESS[folder] = _Process(PoolFolder(folder), settings)
    return _PROCESS[folder]


@dataclass
class _Word:
    """What a worker says of itself in workers/NAME.json (`pool.folder`), written by a thread that spares the disk."""

    path: Path
    said: dict[str, Any]
    lock: threading.Lock = field(default_factory=threading.Lock)
    changed: threading.Event = field(default_factory=threading.Event)

    def say(self, **news: Any) -> None:
        with self.lock:
            self.said |= news
        self.changed.set()

    def write(self) -> None:
        with self.lock:
            text = json.dumps(self.said)
        with contextlib.suppress(OSError):  # results will not be taken either, and those say so
            replace_text(self.path, text)

    def keep_writing(self) -> None:
        while self.changed.wait():
            self.changed.clear()
            self.write()
            time.sleep(WRITE_S)


class _Process:
    def __init__(self, folder: PoolFolder, settings: Settings) -> None:
        self.folder, self.settings = folder, settings
        rank = int(os.environ.get("PARSL_WORKER_RANK", "0"))
        lane = settings["lanes"][rank % len(settings["lanes"])]
        self.accelerator = see_only(lane, settings["by_index"])
        self.name, self._lock = claimed(folder.path, self.accelerator)
        self.word = _Word(folder.path / "workers" / f"{self.name}.json", self._first_word())
        self.loop = asyncio.new_event_loop()
        self.worker: Worker | None = None
        self.failures, self.bounced = 0, 0
        self.healthy = False
        for run in (self.loop.run_forever, self.word.keep_writing):
            threading.Thread(target=run, daemon=True).start()

    def _first_word(self) -> dict[str, Any]:
        told = {"worker": self.name, "host": socket.gethostname(), "pid": os.getpid(), "device": self.accelerator}
        pool = os.environ.get("PARSL_WORKER_POOL_ID")
        since = {"state": "idle", "job": None, "since": time.time()}
        return {**told, "pool": pool, **since, "done": 0, "failed": 0}

    def answer(self, spec: JobSpec, tries: int) -> Answer:
        reason = self.folder.get("aside", self.name)
        if reason is not None:
            return self._handed_back(reason["reason"])
        self.word.say(state="working", job=spec.id, since=time.time())
        try:
            self._check_health()
        except InfrastructureError as sick:
            self._put_aside(f"its health check failed: {sick.what}")
            return self._handed_back(sick.what)
        try:
            done = self._wait(finished(self._opened(), spec, self.folder, tries), 2 * spec.deadline_s + GRACE_S)
        except KernelwrightError as error:
            return self._failed(error)
        self.failures = 0
        self.word.say(state="idle", job=None, since=time.time(), done=self.word.said["done"] + 1)
        return {"worker": self.name, "finished": done.to_json()}

    def _failed(self, error: KernelwrightError) -> Answer:
        """The machine's fault; the next job waits for a look at the worker's health."""
        if not isinstance(error, JobLate):
            self.failures, self.healthy = self.failures + 1, False
        self.word.say(state="idle", job=None, since=time.time(), failed=self.word.said["failed"] + 1)
        if self.failures >= self.settings["aside_after"]:
            self._put_aside(f"{self.failures} failures in a row: {error.what}")
        return {"worker": self.name, "failed": error_to_json(error)}

    def _handed_back(self, reason: str) -> Answer:
        first_s, most_s = HOLD_S
        time.sleep(min(most_s, first_s * 2 ** min(self.bounced, 10)))
        self.bounced += 1
        return {"worker": self.name, "aside": reason}

    def _put_aside(self, reason: str) -> None:
        now = time.time()
        self.word.say(state="aside", job=None, since=now)
        self.folder.put("aside", self.name, {"worker": self.name, "reason": reason, "since": now})

    def close(self) -> None:
        if self.worker is not None:
            self._wait(self.worker.close(), GRACE_S)
            self.worker = None
        self.word.write()

    def _opened(self) -> Worker:
        if self.worker is None:
            sandbox = open_sandbox(self.settings["sandbox"])
            index = int(self.accelerator) if self.accelerator is not None and self.accelerator.isdigit() else None
            self.worker = Worker(self.folder, sandbox, self.name, index, on_stage=self._stage)
        return self.worker

    def _stage(self, job: str, stage: Stage) -> None:
        self.word.say(state=stage, job=job, since=time.time())

    def _check_health(self) -> None:
        """Before the first job, and after each that the machine failed."""
        if not self.healthy:
            self._wait(self._opened().health(), GRACE_S)
            self.healthy = True

    def _wait(self, doing: Coroutine[Any, Any, T], most_s: float) -> T:
        """The result. Where it does not come in time nothing in this process can be relied on, and it ends: whoever
        started it makes another, and the job is lost and tried again."""
        future = asyncio.run_coroutine_threadsafe(doing, self.loop)
        try:
            return future.result(most_s)
        except concurrent.futures.TimeoutError:
            os._exit(1)


def see_only(lane: str | None, by_index: bool) -> str | None:
    """Make one accelerator the only one that this process and its children see; its name.

    Whoever pins workers sets the variables of all vendors together, to what need not be the same accelerator. AMD's two
    filter one after the other, so one of them has to go.
    """
    for name in ("ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "ZE_ENABLE_PCI_ID_DEVICE_ORDER"):
        os.environ.pop(name, None)
    if lane is None:
        return None
    given = [name for name in os.environ.get(GIVEN, "").split(",") if name]
    accelerator = given[int(lane)] if by_index and int(lane) < len(given) else lane
    os.environ |= {"CUDA_VISIBLE_DEVICES": accelerator, "HIP_VISIBLE_DEVICES": accelerator}
    return accelerator


def claimed(folder: Path, accelerator: str | None) -> tuple[str, socket.socket]:
    """A name that no other process of this machine has in this pool, and what holds it, which ends with us: a worker that
    died leaves its name, and whatever is known of it, to the one that takes its place.

    It is held by an abstract socket (unix(7)): the kernel gives each name once, and no file is left.
    """
    place = re.sub(r"[^A-Za-z0-9._-]", "_", f"{socket.gethostname()}-{accelerator or 'cores'}")
    for number in range(LANES):
        name = f"{place}-{number}" if number else place
        held = socket.socket(socket.AF_UNIX)
        try:
            held.bind("\0kernelwright-" + hashlib.sha256(f"{os.getuid()} {folder} {name}".encode()).hexdigest()[:32])
        except OSError as error:
            held.close()
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return name, held
    raise JobFault(f"no name is left for a worker of {folder}", f"fewer than {LANES} on one machine", "a reboot")
