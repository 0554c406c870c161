"""The jobs that a pool has begun: whoever wants one that is under way waits for it with the others, and a job that nobody
waits for any longer is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kernelwright.pool import Finished


class UnderWay:
    """By id; all of it in one event loop."""

    def __init__(self, dropped: Callable[[str], None]) -> None:
        """`dropped` is told of jobs that are cancelled, since nobody wants them."""
        self._dropped = dropped
        self._running: dict[str, asyncio.Task[Finished]] = {}
        self._wanted: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._running)

    async def result(self, job: str, begin: Callable[[], Coroutine[Any, Any, Finished]]) -> Finished:
        """Of the job that is under way, or else of what `begin` begins."""
        if job not in self._running:
            self._running[job] = asyncio.create_task(begin())
        self._wanted[job] = self._wanted.get(job, 0) + 1
        task = self._running[job]
        try:
            return await asyncio.shield(task)
        finally:
            self._wanted[job] -= 1
            if not self._wanted[job]:
                await self._forget(job, task)

    async def _forget(self, job: str, task: asyncio.Task[Finished]) -> None:
        del self._wanted[job]
        self._running.pop(job, None)
        if not task.done():
            self._dropped(job)
            task.cancel()
            await asyncio.wait([task])

    async def cancel(self) -> None:
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
