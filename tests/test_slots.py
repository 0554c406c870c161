"""Slots across tasks and across real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest

from kernelwright import slots
from kernelwright.errors import InfrastructureError
from kernelwright.execute import Workshop
from kernelwright.measure import ADVISE, PROVE
from kernelwright.slots import Stage, any_core, available_cores, lock_folder, observed, slot
from kernelwright.trial import exclusive

T = TypeVar("T")

HOLDER = """
import asyncio, subprocess, sys
from pathlib import Path
from kernelwright.slots import slot

async def hold():
    async with slot("cpu", [0, 1], folder=Path(sys.argv[1])):
        child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL)
        print(child.pid, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(hold())
"""


@contextmanager
def holder(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another process that holds cores 0 and 1 until its stdin closes; its own child lives on without it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        yield process, child
    finally:
        process.kill()
        process.wait()
        os.kill(child, signal.SIGKILL)


async def take(folder: Path, *indices: int, on_wait: Callable[[str], None] | None = None) -> None:
    async with slot("cpu", indices, folder=folder, on_wait=on_wait):
        pass


def apart(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that holds nothing of what its maker holds, as another rollout."""
    return asyncio.create_task(work, context=Context())


def test_a_slot_held_by_another_process_is_waited_for_and_said_so(tmp_path: Path) -> None:
    async def scenario(process: subprocess.Popen[str]) -> str:
        said: asyncio.Queue[str] = asyncio.Queue()
        waiting = asyncio.create_task(take(tmp_path, 1, on_wait=said.put_nowait))
        sentence = await said.get()
        assert not waiting.done()
        assert process.stdin is not None
        process.stdin.close()
        await waiting
        return sentence

    with holder(tmp_path) as (process, _):
        assert asyncio.run(scenario(process)) == f"waiting for core 1, held by pid {process.pid}"


def test_a_killed_holder_frees_its_slot_though_its_child_lives_on(tmp_path: Path) -> None:
    async def scenario(process: subprocess.Popen[str]) -> None:
        waiting = asyncio.create_task(take(tmp_path, 0, 1))
        await asyncio.sleep(0)
        assert not waiting.done()
        os.kill(process.pid, signal.SIGKILL)
        await waiting

    with holder(tmp_path) as (process, child):
        asyncio.run(scenario(process))
        os.kill(child, 0)


def test_tasks_of_one_process_take_turns(tmp_path: Path) -> None:
    events: list[str] = []

    async def timed(name: str) -> None:
        async with slot("gpu", [0], folder=tmp_path):
            events.append(f"{name} in")
            await asyncio.sleep(0)
            events.append(f"{name} out")

    async def scenario() -> None:
        await asyncio.gather(timed("a"), timed("b"), timed("c"))

    asyncio.run(scenario())
    assert [events[i][0] == events[i + 1][0] for i in (0, 2, 4)] == [True] * 3


def test_different_cores_and_devices_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            slot("cpu", [0], folder=tmp_path),
            slot("cpu", [1], folder=tmp_path),
            slot("gpu", [0], folder=tmp_path),
        ):
            pass

    asyncio.run(scenario())


def test_a_cancelled_waiter_leaves_nothing_locked(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with slot("cpu", [1], folder=tmp_path):
            waiting = apart(take(tmp_path, 0, 1))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await take(tmp_path, 0)

    asyncio.run(scenario())


def test_the_lock_file_is_open_to_every_user_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        asyncio.run(take(tmp_path, 5))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "kernelwright-cpu-5.lock").stat().st_mode) == 0o666


def test_a_lock_file_that_is_removed_while_waited_for_is_made_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with slot("cpu", [0], folder=tmp_path):
            waiting = apart(take(tmp_path, 0))
            await asyncio.sleep(0)
            (tmp_path / "kernelwright-cpu-0.lock").unlink()
            await waiting

    asyncio.run(scenario())
    assert (tmp_path / "kernelwright-cpu-0.lock").exists()


@pytest.mark.parametrize("trick", ["symlink", "dangling", "hardlink", "fifo", "folder"])
def test_a_planted_file_is_refused_and_untouched(tmp_path: Path, trick: str) -> None:
    victim, lock = tmp_path / "victim", tmp_path / "kernelwright-cpu-0.lock"
    if trick != "dangling":
        victim.write_text("precious")
    if trick in ("symlink", "dangling"):
        lock.symlink_to(victim)
    elif trick == "hardlink":
        lock.hardlink_to(victim)
    elif trick == "fifo":
        os.mkfifo(lock)
    else:
        lock.mkdir()
    with pytest.raises(InfrastructureError, match=r"kernelwright-cpu-0\.lock cannot be used"):
        asyncio.run(take(tmp_path, 0))
    assert trick == "dangling" or victim.read_text() == "precious"
    assert trick != "dangling" or not victim.exists()


def test_the_folder_is_one_that_every_user_can_write_to() -> None:
    assert lock_folder().stat().st_mode & stat.S_IWOTH


def test_available_cores_are_those_of_this_process() -> None:
    assert set(available_cores()) == os.sched_getaffinity(0)


def test_what_a_task_holds_it_need_not_ask_for_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with slot("cpu", available_cores(), folder=tmp_path), slot("cpu", [0], folder=tmp_path):
            await asyncio.gather(take(tmp_path, 0), take(tmp_path, 0))
            async with any_core(folder=tmp_path):
                pass

    asyncio.run(scenario())


def test_each_build_holds_one_core_and_there_are_as_many_as_cores(tmp_path: Path) -> None:
    at_once = most = 0

    async def build() -> None:
        nonlocal at_once, most
        async with any_core(folder=tmp_path):
            at_once += 1
            most = max(most, at_once)
            for _ in range(20):
                await asyncio.sleep(0)
            at_once -= 1

    async def scenario() -> None:
        await asyncio.gather(*(build() for _ in range(3 * len(available_cores()))))

    asyncio.run(scenario())
    assert most == len(available_cores())


def test_who_wants_all_cores_is_served_before_later_builds(tmp_path: Path) -> None:
    order: list[str] = []

    async def build(name: str, until: asyncio.Event) -> None:
        async with any_core(folder=tmp_path):
            order.append(name)
            await until.wait()

    async def timed() -> None:
        async with slot("cpu", available_cores(), folder=tmp_path):
            order.append("timed")

    async def scenario() -> None:
        first_ends, at_once = asyncio.Event(), asyncio.Event()
        at_once.set()
        first = apart(build("first", first_ends))
        for _ in range(20):
            await asyncio.sleep(0)
        waiting = [apart(timed()), apart(build("later", at_once)), apart(build("later", at_once))]
        for _ in range(20):
            await asyncio.sleep(0)
        first_ends.set()
        await asyncio.gather(first, *waiting)

    asyncio.run(scenario())
    assert order == ["first", "timed", "later", "later"]


def test_an_observer_hears_what_is_held(tmp_path: Path) -> None:
    stages: list[Stage] = []

    async def scenario() -> None:
        with observed(stages.append):
            async with any_core(folder=tmp_path):
                pass
            async with slot("gpu", [0], folder=tmp_path), slot("cpu", [0], folder=tmp_path):
                pass

    asyncio.run(scenario())
    assert stages == ["waiting", "building", "working", "waiting", "running", "running", "working"]


def test_a_proof_on_a_device_holds_the_cores_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Advice on the same device leaves them to builds, unless it is the process that is timed."""
    monkeypatch.setattr(slots, "lock_folder", lambda: tmp_path)

    async def scenario(alone: bool, source: str = "regex") -> list[bool]:
        shop = cast(Workshop, SimpleNamespace(device=0, task=SimpleNamespace(time=SimpleNamespace(source=source))))
        async with exclusive(shop, lambda _: None, alone):
            waiting = [apart(take_core()), apart(take_gpu())]
            for _ in range(20):
                await asyncio.sleep(0)
            ended = [task.done() for task in waiting]
        await asyncio.gather(*waiting)
        return ended

    async def take_core() -> None:
        async with any_core():
            pass

    async def take_gpu() -> None:
        async with slot("gpu", [0]):
            pass

    assert (PROVE.alone, ADVISE.alone) == (True, False)
    assert asyncio.run(scenario(alone=True)) == [False, False]
    assert asyncio.run(scenario(alone=False)) == [True, False]
    assert asyncio.run(scenario(alone=False, source="wall")) == [False, False]
