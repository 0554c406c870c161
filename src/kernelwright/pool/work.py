"""What a spec says, done: the worker of one accelerator, or of a machine's cores.

A worker takes several jobs at a time: while one is timed on the device the others are compiled (`slots` sees to who holds
what). Each job has a workshop of its own, with its own built baseline, which is kept open for the next job of the same task;
tools and the verifier never share one. Whether a job is tried again elsewhere is the pool's to say, and where its result
is kept `job`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kernelwright.accept import accept, accept_builds
from kernelwright.acceptance import remember
from kernelwright.approval import Approval
from kernelwright.briefing import brief
from kernelwright.errors import JobFault, JobLate, UserError
from kernelwright.execute import Workshop
from kernelwright.measure import BUDGETS
from kernelwright.other_inputs import open_judged
from kernelwright.pool import Finished, JobSpec, Stage, Times, error_to_json
from kernelwright.pool.archive import unpack
from kernelwright.pool.folder import PoolFolder, disk_faults
from kernelwright.sandbox import Job, Limits, Sandbox
from kernelwright.slots import observed
from kernelwright.state import state_home
from kernelwright.task import Task
from kernelwright.toolbox import Toolbox
from kernelwright.toolchain.devices import gpus
from kernelwright.tools import Bench
from kernelwright.trace import Candidate, ToolCall
from kernelwright.trial import Baseline, Progress, open_baseline
from kernelwright.verify import Verifier
from kernelwright.workspace import WorkFolder, to_its_end

OPEN = 24
"""How many workshops a worker keeps open beyond the jobs that use one; the one that was idle longest is closed first."""
LEAST_FREE_BYTES = 64 * 2**20
OnStage = Callable[[str, Stage], None]


@dataclass
class _Clock:
    """Seconds that a job spends at each stage."""

    tell: Callable[[Stage], None]
    limit: asyncio.Timeout
    """Of the job; it stands still while the job waits for others."""
    left_s: float | None = None
    """What was left of it when the job began to wait; None where it does not."""
    spent: dict[str, float] = field(default_factory=dict)
    stage: Stage = "working"
    since: float = field(default_factory=time.monotonic)
    started: float = field(default_factory=time.monotonic)

    def enter(self, stage: Stage) -> None:
        now = time.monotonic()
        self.spent[self.stage] = self.spent.get(self.stage, 0.0) + now - self.since
        before, self.stage, self.since = self.stage, stage, now
        if stage == before:
            return
        self.tell(stage)
        time_now = asyncio.get_running_loop().time()
        if stage == "waiting" and (end := self.limit.when()) is not None and not self.limit.expired():
            self.left_s = end - time_now
            self.limit.reschedule(None)
        elif self.left_s is not None and not self.limit.expired():
            self.limit.reschedule(time_now + self.left_s)
            self.left_s = None

    def times(self) -> Times:
        self.enter("working")
        parts = {f"{stage}_s": seconds for stage, seconds in self.spent.items()}
        return Times(**parts, total_s=time.monotonic() - self.started)


@dataclass
class _Open:
    """A workshop that is kept, with the baseline that was built in it."""

    shop: Workshop
    baseline: Baseline
    idle_since: float = 0.0


class Worker:
    """Runs jobs of every kind. `device` is the index of its accelerator where it is not the first visible one."""

    def __init__(
        self,
        folder: PoolFolder,
        sandbox: Sandbox,
        name: str,
        device: int | None = None,
        on_stage: OnStage = lambda _job, _stage: None,
        progress: Progress = lambda _: None,
        approval: Approval | None = None,
        keep: bool = False,
    ) -> None:
        self.folder, self.sandbox, self.name, self.device = folder, sandbox, name, device
        self.on_stage, self.progress, self.approval, self.keep = on_stage, progress, approval, keep
        self._home: WorkFolder | None = None
        self._tasks: dict[str, asyncio.Future[Task]] = {}
        self._idle: dict[tuple[str, str], list[_Open]] = {}
        self._first: dict[tuple[str, str], Baseline] = {}
        self._turns: dict[tuple[str, str], asyncio.Lock] = {}

    async def run(self, spec: JobSpec) -> Finished:
        """The job's result, which is kept nowhere. Raises InfrastructureError; JobLate where the deadline passed."""
        limit = asyncio.timeout(spec.deadline_s if self.approval is None else None)  # no person is hurried
        clock = _Clock(lambda stage: self.on_stage(spec.id, stage), limit)
        value: dict[str, Any] | None = None
        error: dict[str, str] | None = None
        try:
            async with limit:
                with observed(clock.enter):
                    value = await _KINDS[spec.kind](self, spec)
        except UserError as mistake:
            error = error_to_json(mistake)
        except OSError as fault:
            if limit.expired():
                raise JobLate(
                    f"job {spec.id} was at work for {spec.deadline_s:g} s",
                    "an end before its deadline",
                    "a longer deadline",
                ) from None
            raise JobFault(
                f"a job's files cannot be written: {fault.strerror or fault}", "free space", "free some space"
            ) from None
        return Finished(spec.id, spec.kind, value, error, self.name, clock.times(), time.time())

    async def health(self) -> None:
        """Raises an InfrastructureError where jobs cannot run here: no sandbox, no space, no answer from the device."""
        result = await self.sandbox.run(Job(("/bin/true",), "/", limits=Limits(wall_s=20.0)))
        if result.exit_code != 0:
            raise JobFault("the sandbox does not run /bin/true", "exit code 0", "kernelwright doctor")
        for place in (self.folder.path, state_home()):
            with disk_faults(place):
                free = shutil.disk_usage(place).free
            if free < LEAST_FREE_BYTES:
                raise JobFault(f"the disk that holds {place} is full", "some free space", "remove what is not needed")
        if self.device is not None and all(gpu.index != self.device for gpu in await asyncio.to_thread(gpus)):
            raise JobFault(f"device {self.device} does not answer", "a line of nvidia-smi or rocm-smi", "a reboot")

    async def close(self) -> None:
        """Remove every workshop and task."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        async with contextlib.AsyncExitStack() as closing:
            if self._home is not None:
                closing.push_async_callback(to_its_end, self._home.close)
            for opened in [opened for idle in self._idle.values() for opened in idle]:
                closing.push_async_exit(opened.shop)
            self._idle.clear()

    async def task(self, digest: str) -> Task:
        """The task of an archive, unpacked once."""
        if self._home is None:
            self._home = WorkFolder()
        unpacking = self._tasks.get(digest)
        if unpacking is None:
            into = self._home.path / digest
            unpacking = self._tasks[digest] = asyncio.ensure_future(asyncio.to_thread(self._unpack, digest, into))
        try:
            return await asyncio.shield(unpacking)
        except Exception:
            if self._tasks.get(digest) is unpacking:
                del self._tasks[digest]
            raise

    def _unpack(self, digest: str, into: Path) -> Task:
        shutil.rmtree(into, ignore_errors=True)  # what a try that failed has left
        task, accepted = unpack(self.folder, digest, into)
        if accepted is not None:
            remember(task, accepted["arch"], accepted["acceptance"])
        return task

    @asynccontextmanager
    async def opened(self, digest: str, use: str) -> AsyncIterator[Baseline]:
        """A baseline of a task for this job alone. `use` is tools or judge: the verifier starts from its own."""
        key = (digest, use)
        idle = self._idle.setdefault(key, [])
        one = idle.pop() if idle else await self._open(key)
        try:
            yield one.baseline
        except BaseException:
            await one.shop.__aexit__(None, None, None)  # nobody knows what it was in the middle of
            raise
        one.idle_since = time.monotonic()
        idle.append(one)
        await self._close_oldest()

    async def _open(self, key: tuple[str, str]) -> _Open:
        digest, use = key
        shop = Workshop(await self.task(digest), self.sandbox, self.keep, self.approval, self.device)
        await shop.__aenter__()
        try:
            baseline = await (open_judged(shop, self.progress) if use == "judge" else self._open_like_first(key, shop))
        except BaseException:
            await shop.__aexit__(None, None, None)
            raise
        return _Open(shop, baseline)

    async def _open_like_first(self, key: tuple[str, str], shop: Workshop) -> Baseline:
        """What the original's runs left is made by the first workshop of a task; the others wait for it."""
        async with self._turns.setdefault(key, asyncio.Lock()):
            if key not in self._first:
                self._first[key] = await open_baseline(shop, shop.task.shown, self.progress)
                return self._first[key]
        return await open_baseline(shop, shop.task.shown, self.progress, self._first[key])

    async def _close_oldest(self) -> None:
        idle = [(opened.idle_since, key, opened) for key, row in self._idle.items() for opened in row]
        if len(idle) > OPEN:
            _, key, oldest = min(idle, key=lambda entry: entry[0])
            self._idle[key].remove(oldest)
            await oldest.shop.__aexit__(None, None, None)


async def _tool(worker: Worker, spec: JobSpec) -> dict[str, Any]:
    """One tool call of a rollout; the message that it gives."""
    given = spec.payload
    async with worker.opened(_archive(spec), "tools") as baseline:
        known = {name: candidate_from(data) for name, data in given["known"].items()}
        bench = Bench(baseline, random.Random(given["seed"]), worker.progress, known)
        regions = {name: span.text for name, span in baseline.shop.spans.items()}
        waited = worker.approval
        toolbox = Toolbox(
            bench.tools(given["tools"]),
            regions,
            baseline.task.language,
            waited_s=lambda: waited.waited_s if waited is not None else 0.0,
        )
        message = await toolbox.call(ToolCall(**given["call"]), given["content"])
        return message.to_json()


async def _verdict(worker: Worker, spec: JobSpec) -> dict[str, Any]:
    given = spec.payload
    async with worker.opened(_archive(spec), "judge") as baseline:
        verifier = Verifier(baseline, random.Random(given.get("seed")), worker.progress)
        budget_s = given["time_budget_s"] or baseline.task.verify.budget_s
        verdict = await verifier(candidate_from(given["candidate"]), BUDGETS[given["budget"]], budget_s)
        return verdict.to_json()


async def _accept(worker: Worker, spec: JobSpec) -> dict[str, Any]:
    task = await worker.task(_archive(spec))
    if spec.payload.get("builds_only"):
        return (await accept_builds(task, worker.sandbox, progress=worker.progress)).to_json()
    acceptance = await accept(
        task,
        worker.sandbox,
        seed=spec.payload.get("seed"),
        device=worker.device,
        time_budget_s=spec.payload.get("time_budget_s"),
        progress=worker.progress,
    )
    return acceptance.to_json()


async def _brief(worker: Worker, spec: JobSpec) -> dict[str, Any]:
    """What a policy is told of the task on this worker's machine."""
    async with worker.opened(_archive(spec), "tools") as baseline:
        return asdict(await brief(baseline, worker.progress))


async def _health(worker: Worker, _: JobSpec) -> dict[str, Any]:
    await worker.health()
    return {}


_KINDS: Mapping[str, Callable[[Worker, JobSpec], Awaitable[dict[str, Any]]]] = {
    "tool": _tool,
    "verdict": _verdict,
    "accept": _accept,
    "brief": _brief,
    "health": _health,
}


def candidate_from(data: Mapping[str, Any]) -> Candidate:
    """A candidate from its JSON form."""
    return Candidate(dict(data["final_code"]), tuple(data["compile_args"]), data.get("explanation", ""))


def _archive(spec: JobSpec) -> str:
    if spec.archive is None:
        raise UserError(f"job {spec.id} names no task", f"an archive for a job of kind {spec.kind}", "pool specs")
    return spec.archive
