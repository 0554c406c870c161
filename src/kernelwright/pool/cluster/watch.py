"""Looks after what a driver would otherwise wait for without end: an interchange that died, a block that is stuck, workers
of whom each is put aside."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from kernelwright.errors import InfrastructureError
from kernelwright.pool.folder import PoolFolder

LOOK_S = 2.0
STUCK_S = 120.0
"""A block that has jobs, and none of whose workers did anything for so long, is given up. (A worker that is killed while it
waits for a job can take the lock of its node's queue with it.)"""
SEND_MS = 5000
"""A job that the interchange does not take within this time finds nobody there: it takes them at once."""
ALL_ASIDE_S = 15.0
"""So long nobody but workers that are put aside is there, and no block is awaited, before the pool gives up."""

T = TypeVar("T")
Workers = dict[str, list[dict[str, Any]]]
"""What workers say of themselves, by the manager that started them: one on each node of a block."""


class Watch:
    def __init__(self, executor: Any, folder: PoolFolder) -> None:
        self.executor, self.folder = executor, folder
        self._still: dict[str, tuple[object, float]] = {}
        """What was seen of each manager's workers when something was last new, and when that was."""
        self._aside_since: float | None = None

    async def go(self, busy: Callable[[], bool]) -> InfrastructureError:
        """Returns why the pool cannot go on. Looks only while it is `busy`."""
        looking: asyncio.Future[InfrastructureError | None] | None = None
        while True:
            await asyncio.sleep(LOOK_S)
            if not alive(self.executor):
                return InfrastructureError(
                    "Parsl's interchange has ended", "it to live as long as the pool", "the same command again"
                )
            if looking is not None and looking.done() and (error := looking.result()) is not None:
                return error
            if (looking is None or looking.done()) and busy() and hasattr(self.executor, "connected_managers"):
                looking = in_a_thread_of_its_own(self._look)

    def _look(self) -> InfrastructureError | None:
        managers = self.executor.connected_managers()
        workers: Workers = {}
        for worker in self.folder.all("workers").values():
            workers.setdefault(worker.get("pool") or "", []).append(worker)
        for manager in managers:
            self._give_up_if_stuck(manager, workers.get(manager["manager"], []))
        return self._all_aside(managers, workers)

    def _give_up_if_stuck(self, manager: dict[str, Any], workers: list[dict[str, Any]]) -> None:
        name, now = manager["manager"], time.monotonic()
        idle = all(worker["state"] == "idle" for worker in workers)
        seen = [(worker["worker"], worker["pid"], worker["done"], worker["failed"]) for worker in workers]
        before, since = self._still.get(name, (None, now))
        if not manager["tasks"] or not idle or seen != before:
            self._still[name] = (seen, now)
        elif now - since > STUCK_S:
            self.executor.provider.cancel([self.executor.blocks_to_job_id[manager["block_id"]]])
            del self._still[name]

    def _all_aside(self, managers: list[dict[str, Any]], workers: Workers) -> InfrastructureError | None:
        reasons = {name: told["reason"] for name, told in self.folder.all("aside").items()}
        able = sum(
            manager["worker_count"] - sum(worker["worker"] in reasons for worker in workers.get(manager["manager"], []))
            for manager in managers
        )
        there = {manager["block_id"] for manager in managers}
        blocks = self.executor.status_facade.items()
        awaited = any(status.state.name == "PENDING" and block not in there for block, status in blocks)
        if able > 0 or not reasons or awaited:
            self._aside_since = None
            return None
        self._aside_since = self._aside_since or time.monotonic()
        if time.monotonic() - self._aside_since < ALL_ASIDE_S:
            return None
        said = "; ".join(f"{name}: {reason}" for name, reason in sorted(reasons.items())[:5])
        return InfrastructureError(
            f"no worker is left that may take jobs ({said})",
            "a machine that works",
            "kernelwright doctor, on that machine",
        )


def alive(executor: Any) -> bool:
    """Whether the process lives that hands out the jobs; executors without one are asked by nobody."""
    process = getattr(executor, "interchange_proc", None)
    return process is None or process.poll() is None


def bound_sends(executor: Any) -> None:
    """From now on a job that cannot be handed to the interchange, since that has died, is refused after some seconds; else
    the thread that hands it over waits for ever, and the end of the program for that thread."""
    from zmq import SNDTIMEO

    executor.outgoing_q.zmq_socket.setsockopt(SNDTIMEO, SEND_MS)


def abandoned(kernel: Any, executor: Any) -> None:
    """End the blocks of a pool whose interchange is gone. Parsl's own way out, and its threads, would wait for its word."""
    atexit.unregister(kernel.atexit_cleanup)
    executor.provider.cancel(list(executor.blocks_to_job_id.values()))


def in_a_thread_of_its_own(function: Callable[[], T]) -> asyncio.Future[T | None]:
    """What it returns; None where it fails, which the thread then says. A thread that waits for an interchange that has
    died never ends, and nobody waits for that."""
    loop = asyncio.get_running_loop()
    here: asyncio.Future[T | None] = loop.create_future()

    def settle(found: T | None) -> None:
        if not here.done():
            here.set_result(found)

    def work() -> None:
        found = None
        try:
            found = function()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=work, daemon=True).start()
    return here
