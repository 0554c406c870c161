"""The pool of a cluster: Parsl asks the scheduler for blocks of nodes, and each accelerator there has a worker (`remote`).

Results are kept in the shared folder by the workers, so a driver that was killed and started again finds them there. Parsl
hands out jobs and says when a worker or a block is lost; what is tried again, how often, and who is no longer trusted is
decided here. A driver's death ends everything: the kernel ends Parsl's interchange with it, and blocks that no longer hear
from that end themselves within seconds.

Only this package loads Parsl, and only when a pool is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from concurrent.futures import Future
from dataclasses import replace
from types import TracebackType
from typing import Any

from kernelwright.errors import InfrastructureError, JobLost
from kernelwright.pool import Finished, JobSpec, error_from
from kernelwright.pool.archive import put
from kernelwright.pool.board import Board
from kernelwright.pool.cluster.blocks import LABEL, executor_of, resources_of, settings_of
from kernelwright.pool.cluster.watch import Watch, abandoned, alive, bound_sends
from kernelwright.pool.config import PoolConfig
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.remote import Answer, run_spec
from kernelwright.pool.under_way import UnderWay
from kernelwright.task import Task
from kernelwright.workspace import to_its_end

QUEUE = 1000
"""Jobs that may be with Parsl at once; a further one is not taken before one of them has ended."""
PAUSE_S = 0.5
"""Before the second try; twice as long before each further one."""
BOUNCES = 100
"""How often one try of a job may be handed back."""
PERIOD_S = 1
"""How often it is looked whether there are blocks enough for the jobs."""


class ClusterPool:
    """A pool of a cluster; see `kernelwright.pool.Pool`. Raises UsageError where the configuration does not fit the
    scheduler's provider, or where Parsl is not installed."""

    def __init__(self, config: PoolConfig, *, queue: int = QUEUE) -> None:
        self.config = config
        self.folder = PoolFolder(config.folder)
        self._runs = self.folder.path / "parsl"
        self._executor = executor_of(config, self._runs)
        self._settings = settings_of(config)
        self._resources = resources_of(config)
        self._kernel: Any = None
        self._room = asyncio.Semaphore(queue)
        self.board = Board(config.kind, self.folder)
        self._jobs = UnderWay(self.board.dropped)

    async def __aenter__(self) -> ClusterPool:
        self._open = contextlib.AsyncExitStack()
        self._open.enter_context(self.folder.driven())
        await self._open.enter_async_context(self.board.kept())
        try:
            await to_its_end(self._start)
        except BaseException:
            await self._close()
            raise
        self._over = asyncio.create_task(Watch(self._executor, self.folder).go(lambda: bool(self._jobs)))
        """Why the pool cannot go on, once that is so."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._jobs.cancel()
        self._over.cancel()
        await asyncio.wait([self._over])
        await self._close()

    async def _close(self) -> None:
        try:
            await to_its_end(self._stop)
        finally:
            await self._open.aclose()

    def _start(self) -> None:
        """What earlier drivers left of Parsl's own, and of workers, says nothing about these."""
        from parsl import Config, DataFlowKernel

        for old in (*(self.folder.path / "workers").glob("*.json"), *(self.folder.path / "aside").glob("*.json")):
            old.unlink(missing_ok=True)
        shutil.rmtree(self._runs, ignore_errors=True)
        self._kernel = DataFlowKernel(
            Config(
                executors=[self._executor],
                run_dir=str(self._runs),
                strategy="simple",
                strategy_period=PERIOD_S,
                initialize_logging=False,
            )
        )
        bound_sends(self._executor)

    def _stop(self) -> None:
        if self._kernel is None:
            return
        if alive(self._executor):
            self._kernel.cleanup()
        else:
            abandoned(self._kernel, self._executor)

    async def add(self, task: Task) -> str:
        """Make a task known to all workers; the hash of its archive. With it goes what `check` found of it here."""
        return await asyncio.to_thread(put, task, self.folder)

    async def run(self, spec: JobSpec) -> Finished:
        """The result, at once where the folder has it; equal specs that are under way are one job. Where nobody waits for
        it any longer a job that Parsl has is still done, and its result kept."""
        if (known := self.folder.result(spec.id)) is not None:
            self.board.adopted(known)
            return known
        return await self._jobs.result(spec.id, lambda: self._run(spec))

    async def _run(self, spec: JobSpec) -> Finished:
        queued = time.monotonic()
        self.board.queued(spec)
        async with self._room:
            for number in range(1, self.config.tries + 1):
                try:
                    done = await self._tried(spec, number)
                except InfrastructureError as error:
                    if number == self.config.tries or self._over.done():
                        self.board.failed(spec, error)
                        raise
                    self.board.retried(spec, error)
                    await asyncio.sleep(PAUSE_S * 2 ** (number - 1))
                except BaseException:
                    self.board.dropped(spec.id)
                    raise
                else:
                    waited_s = max(0.0, time.monotonic() - queued - done.times.total_s)
                    done = replace(done, times=replace(done.times, queued_s=waited_s))
                    self.board.done(done)
                    return done
        raise AssertionError("a job is tried at least once")

    async def _tried(self, spec: JobSpec, number: int) -> Finished:
        """One try, which being handed back by a worker that is put aside is not."""
        for _ in range(BOUNCES):
            answer = await self._answer(spec, number)
            if "aside" in answer:
                self.board.aside(answer["worker"], answer["aside"])
                continue
            if "failed" in answer:
                raise error_from(answer["failed"])
            return Finished.from_json(answer["finished"])
        raise InfrastructureError(
            f"job {spec.id} was handed back {BOUNCES} times by workers that are put aside",
            "a worker that may take jobs",
            "kernelwright pool status, which has their reasons",
        )

    async def _answer(self, spec: JobSpec, number: int) -> Answer:
        """Raises JobLost where the job was lost with its worker, the pool's own error where all is over."""
        from parsl.errors import ParslError
        from parsl.executors.high_throughput.errors import ManagerLost, WorkerLost
        from zmq import ZMQError

        given = self._kernel.submit(
            run_spec,
            app_args=(str(self.folder.path), spec.to_json(), self._settings, number),
            executors=[LABEL],
            cache=False,
            ignore_for_cache=(),
            app_kwargs={"parsl_resource_specification": self._resources} if self._resources else {},
        )
        answer = await_in_loop(given)
        await asyncio.wait({answer, self._over}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise self._over.result()
        try:
            found: Answer = answer.result()
            return found
        except (WorkerLost, ManagerLost, ZMQError) as lost:
            raise JobLost(f"job {spec.id} was lost: {lost}", "a worker that lives", "") from None
        except ImportError as error:
            raise InfrastructureError(
                f"a worker cannot load Kernelwright: {error}",
                "the same Kernelwright and Parsl on all machines",
                "worker_init, with what activates the environment",
            ) from None
        except ParslError as error:
            raise InfrastructureError(
                f"the blocks of workers fail: {str(error).strip()[-2000:]}",
                "blocks that start and connect to this machine",
                "worker_init, [scheduler] and address of the configuration",
            ) from None


def await_in_loop(given: Future[Any]) -> asyncio.Future[Any]:
    """Its outcome as one of this event loop. (Parsl's futures cannot be cancelled, and say so by an exception.)"""
    loop = asyncio.get_running_loop()
    here: asyncio.Future[Any] = loop.create_future()

    def settle(_: Future[Any]) -> None:
        if here.done():
            return
        error = given.exception()
        if error is None:
            here.set_result(given.result())
        else:
            here.set_exception(error)
            here.exception()  # whether anybody still waits or not, it is not news to the loop

    def told(_: Future[Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, given)

    given.add_done_callback(told)
    return here
