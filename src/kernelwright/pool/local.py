"""The embedded pool: this machine's cores and accelerators, in this process, with no service.

Each accelerator has a worker, or one does for the cores where there is none. A worker takes as many jobs at a time as can
be built beside what is timed; further ones wait in a queue of bounded length, and whoever would make it longer waits until
there is room. What fails for the machine's fault is tried again, by another worker where there is one, and a worker that
fails again and again, or whose health check does, gets no more jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from kernelwright.approval import Approval
from kernelwright.errors import InfrastructureError, JobLate
from kernelwright.pool import Finished, JobSpec
from kernelwright.pool.archive import put
from kernelwright.pool.board import Board
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.under_way import UnderWay
from kernelwright.pool.work import Worker
from kernelwright.sandbox import Sandbox
from kernelwright.slots import available_cores
from kernelwright.state import locked_folder, state_home
from kernelwright.task import Task
from kernelwright.toolchain.devices import visible_gpus
from kernelwright.trial import Progress
from kernelwright.workspace import remove, sweep

QUEUE = 1000
"""Jobs that may wait or run at once; a further one is not taken before one of them has ended."""
TRIES = 3
"""How often a job is begun, where the machine fails it each time."""
PATIENCE = 3
"""After so many failures in a row that were the machine's, a worker gets no more jobs."""
PAUSE_S = 0.5
"""Before the second try; twice as long before each further one."""


@dataclass
class _Lane:
    """A worker with the jobs that it may take at once."""

    worker: Worker
    room: asyncio.Semaphore
    load: int = 0
    """Jobs that wait for it or that it runs."""
    failures: int = 0
    """In a row."""
    aside: str | None = None
    """Why it gets no more jobs."""


class LocalPool:
    """A pool of this machine; see `kernelwright.pool.Pool`. With a `folder` results are kept there and found again; without
    one they are given to who asks, and not kept.

    `at_once` is how many jobs one worker may have begun; `devices` are the accelerators to use, by default all that are
    visible, and none where there is none.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        folder: PoolFolder | None = None,
        *,
        devices: list[int] | None = None,
        at_once: int | None = None,
        queue: int = QUEUE,
        tries: int = TRIES,
        patience: int = PATIENCE,
        progress: Progress = lambda _: None,
        approval: Approval | None = None,
        keep: bool = False,
    ) -> None:
        self.sandbox, self.tries, self.patience, self._given = sandbox, tries, patience, folder
        self._progress, self._approval, self._keep = progress, approval, keep
        self._devices, self._at_once = devices, at_once
        self._room = asyncio.Semaphore(queue)

    async def __aenter__(self) -> LocalPool:
        async with contextlib.AsyncExitStack() as opening:
            self.folder = self._given or PoolFolder(await asyncio.to_thread(self._own_folder, opening))
            if self._given is not None:
                opening.enter_context(self.folder.driven())
            devices = self._devices if self._devices is not None else await asyncio.to_thread(accelerators)
            names = [f"device-{device}" for device in devices] or ["cores"]
            at_once = self._at_once or max(2, len(available_cores()) // len(names) + 1)
            self.board = Board("local", self.folder, names)
            await opening.enter_async_context(self.board.kept())
            self._lanes = []
            for name, device in zip(names, devices or (None,), strict=True):
                worker = self._worker(name, device)
                opening.push_async_callback(worker.close)
                self._lanes.append(_Lane(worker, asyncio.Semaphore(at_once)))
            self._jobs = UnderWay(self.board.dropped)
            opening.push_async_callback(self._jobs.cancel)
            self._open = opening.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    def _own_folder(self, opening: contextlib.AsyncExitStack) -> Path:
        """Removed at the end, or by the next pool where this one was killed."""
        home = state_home() / "pools"
        home.mkdir(exist_ok=True)
        sweep(home)
        path, lock = locked_folder(home)
        opening.callback(os.close, lock)
        opening.callback(remove, path)
        return path

    def _worker(self, name: str, device: int | None) -> Worker:
        return Worker(
            self.folder,
            self.sandbox,
            name,
            device,
            on_stage=lambda job, stage: self.board.stage(job, stage),
            progress=self._progress,
            approval=self._approval,
            keep=self._keep,
        )

    async def add(self, task: Task) -> str:
        """Make a task known; the hash of its archive."""
        return await asyncio.to_thread(put, task, self.folder)

    async def run(self, spec: JobSpec) -> Finished:
        """The result, at once where the folder has it; equal specs that are under way are one job."""
        if self._given is not None and (known := self.folder.result(spec.id)) is not None:
            self.board.adopted(known)
            return known
        return await self._jobs.result(spec.id, lambda: self._run(spec))

    async def _run(self, spec: JobSpec) -> Finished:
        queued = time.monotonic()
        self.board.queued(spec)
        async with self._room:
            for number in range(1, self.tries + 1):
                try:
                    async with self._lane() as lane:
                        done = replace(await self._tried(lane, spec, queued), tries=number)
                    if self._given is not None:
                        done = await asyncio.to_thread(self.folder.keep, done)
                except InfrastructureError as error:
                    if number == self.tries:
                        self.board.failed(spec, error)
                        raise
                    self.board.retried(spec, error)
                    await asyncio.sleep(PAUSE_S * 2 ** (number - 1))
                except BaseException:
                    self.board.dropped(spec.id)
                    raise
                else:
                    self.board.done(done)
                    return done
        raise AssertionError("a job is tried at least once")

    @contextlib.asynccontextmanager
    async def _lane(self) -> AsyncIterator[_Lane]:
        """The worker with the fewest jobs, once it has room for one more; another where it is put aside meanwhile."""
        while True:
            able = [lane for lane in self._lanes if lane.aside is None]
            if not able:
                reasons = "; ".join(f"{lane.worker.name}: {lane.aside}" for lane in self._lanes)
                raise InfrastructureError(
                    f"no worker is left that may take jobs ({reasons})", "a machine that works", "kernelwright doctor"
                )
            lane = min(able, key=lambda lane: lane.load)
            lane.load += 1
            try:
                async with lane.room:
                    if lane.aside is None:
                        yield lane
                        return
            finally:
                lane.load -= 1

    async def _tried(self, lane: _Lane, spec: JobSpec, queued: float) -> Finished:
        waited_s = time.monotonic() - queued
        self.board.begun(spec, lane.worker.name)
        try:
            done = await lane.worker.run(spec)
        except InfrastructureError as error:
            await self._failed(lane, error)
            raise
        lane.failures = 0
        return replace(done, times=replace(done.times, queued_s=waited_s))

    async def _failed(self, lane: _Lane, error: InfrastructureError) -> None:
        """Count a failure that was the machine's, and put the worker aside where it had enough, or is sick. The last worker
        stays, since each of its failures is told anyway."""
        if isinstance(error, JobLate):
            return
        lane.failures += 1
        said = f"{lane.failures} failures in a row: {error.what}" if lane.failures >= self.patience else None
        try:
            await lane.worker.health()
        except InfrastructureError as sick:
            said = f"its health check failed: {sick.what}"
        if said is not None and lane.aside is None and len(self._lanes) > 1:
            lane.aside = said
            self.board.aside(lane.worker.name, said)


def accelerators() -> list[int]:
    """The indices of the accelerators of this machine that are visible, of the vendor that has any."""
    found = ([gpu.index for gpu in visible_gpus(vendor)] for vendor in ("nvidia", "amd"))
    return next(filter(None, found), [])
