"""The embedded pool with real jobs: tools and verdicts, several at a time, the machine's faults tried again."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextvars import Context
from pathlib import Path
from typing import Any, TypeVar

import pytest

from app import FASTER, WRONG
from kernelwright.acceptance import remember
from kernelwright.errors import InfrastructureError, JobFault, JobLate, TaskError, UsageError
from kernelwright.outcome import Comparison, Outcome, Verdict
from kernelwright.pool import Finished, JobSpec
from kernelwright.pool.archive import put, unpack
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.local import LocalPool
from kernelwright.pool.rollouts import PooledTools
from kernelwright.pool.work import Worker
from kernelwright.sandbox import Job, JobResult
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.sandbox.bubblewrap import BubblewrapSandbox
from kernelwright.slots import available_cores, slot
from kernelwright.state import state_home
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate, Message, ToolCall

T = TypeVar("T")


def on_a_pool(use: Callable[[LocalPool], Awaitable[T]], folder: PoolFolder | None = None, **options: Any) -> T:
    async def work() -> T:
        async with LocalPool(open_sandbox(), folder, **options) as pool:
            return await use(pool)

    return asyncio.run(work())


def health(number: int, **more: Any) -> JobSpec:
    return JobSpec("health", {"number": number}, **more)


async def tools_of(pool: LocalPool, app: Path, rollout: str = "r") -> PooledTools:
    return PooledTools(pool, await pool.add(load_task(app)), "cpp", {"smooth": FASTER}, rollout, 0)


def test_tool_calls_are_jobs_and_later_ones_know_the_candidates_of_earlier_ones(app: Path) -> None:
    async def use(pool: LocalPool) -> list[Message]:
        tools = await tools_of(pool, app)
        return [
            await tools.call(ToolCall("1", "benchmark_code", {"code": {"smooth": FASTER}}), ""),
            await tools.call(ToolCall("2", "benchmark_code", {"code": {"smooth": WRONG}}), ""),
            await tools.call(ToolCall("3", "compiler_analysis", {"candidate": "c1"}), ""),
            await tools.call(ToolCall("4", "search", {"pattern": "smooth"}), ""),
            await tools.call(ToolCall("5", "compiler_analysis", {"candidate": "c9"}), ""),
        ]

    said = on_a_pool(use)
    assert [message.data.get("outcome") for message in said[:2]] == ["correct", "wrong_result"]
    assert [message.data.get("candidate") for message in said[:2]] == ["c1", "c2"]
    assert [message.ok for message in said] == [True, True, True, True, False]
    assert "one of c1, c2" in said[4].content


def test_rollouts_of_one_task_do_not_disturb_each_other(app: Path) -> None:
    async def use(pool: LocalPool) -> list[Message]:
        async def one(number: int) -> Message:
            tools = await tools_of(pool, app, f"r{number}")
            text = WRONG if number % 2 else FASTER
            return await tools.call(ToolCall("1", "benchmark_code", {"code": {"smooth": text}}), "")

        return await asyncio.gather(*(one(number) for number in range(6)))

    outcomes = [message.data["outcome"] for message in on_a_pool(use, at_once=4)]
    assert outcomes == ["correct", "wrong_result"] * 3


def test_a_verdict_is_a_job_whose_result_is_found_again(app: Path, tmp_path: Path) -> None:
    folder = PoolFolder(tmp_path / "pool")
    payload = {"candidate": Candidate({"smooth": FASTER}).to_json(), "budget": "evaluate", "time_budget_s": None}

    async def use(pool: LocalPool) -> Finished:
        return await pool.run(JobSpec("verdict", payload, await pool.add(load_task(app))))

    first = on_a_pool(use, folder)
    verdict = Verdict.from_json(first.result)
    assert (verdict.outcome, verdict.comparison) == (Outcome.CORRECT, Comparison.FASTER)
    assert verdict.to_json() == first.value
    assert first.times.building_s > 0
    assert first.times.running_s > 0
    assert on_a_pool(use, folder) == first


def test_equal_specs_under_way_are_one_job(tmp_path: Path) -> None:
    async def use(pool: LocalPool) -> list[Finished]:
        return await asyncio.gather(*(pool.run(health(1)) for _ in range(5)))

    first, *others = on_a_pool(use, PoolFolder(tmp_path / "pool"))
    assert others == [first] * 4


def test_a_task_that_is_not_sound_is_a_result_and_raised_as_the_users_mistake(app: Path) -> None:
    (app / "src" / "main.cpp").write_text((app / "src" / "main.cpp").read_text() + "\nthis is no C++\n")

    async def use(pool: LocalPool) -> Finished:
        return await pool.run(JobSpec("brief", {}, await pool.add(load_task(app))))

    done = on_a_pool(use)
    assert done.value is None
    with pytest.raises(TaskError, match="the unmodified code does not build"):
        _ = done.result


class Failing(BubblewrapSandbox):
    """A sandbox whose machine fails the first jobs."""

    def __init__(self, failures: int, error: InfrastructureError) -> None:
        super().__init__()
        self.failures, self.error = failures, error

    async def run(self, job: Job) -> JobResult:
        self.failures -= 1
        if self.failures >= 0:
            raise self.error
        return await super().run(job)


@pytest.fixture
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.pool.local.PAUSE_S", 0.001)


@pytest.mark.usefixtures("_no_pause")
def test_what_the_machine_failed_is_tried_again_and_at_last_raised() -> None:
    async def work(failures: int) -> tuple[Finished, dict[str, Any]]:
        async with LocalPool(Failing(failures, JobFault("no space left"))) as pool:
            return await pool.run(health(1)), pool.board.snapshot()

    done, snapshot = asyncio.run(work(1))
    assert done.tries == 2
    assert snapshot["jobs"]["done"] == 1
    with pytest.raises(JobFault, match="no space left"):
        asyncio.run(work(100))


@pytest.mark.usefixtures("_no_pause")
def test_a_worker_whose_device_is_sick_is_put_aside_and_the_others_do_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho '1, GPU-1, NVIDIA H200, 9.0, 143771, 0, 0'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")

    async def use(pool: LocalPool) -> tuple[list[Finished], dict[str, Any]]:
        done = [await pool.run(health(number)) for number in range(4)]
        return done, pool.board.snapshot()

    done, snapshot = on_a_pool(use, PoolFolder(tmp_path / "pool"), devices=[0, 1])
    assert {one.worker for one in done} == {"device-1"}
    assert [one.tries for one in done] == [2, 1, 1, 1]
    assert "device 0 does not answer" in snapshot["workers"]["device-0"]["reason"]


@pytest.mark.usefixtures("_no_pause")
def test_without_a_worker_that_works_a_job_fails_with_the_reasons(tmp_path: Path) -> None:
    async def use(pool: LocalPool) -> None:
        with pytest.raises(InfrastructureError, match=r"no worker is left.*device-4: its health check failed"):
            await pool.run(health(0))

    on_a_pool(use, PoolFolder(tmp_path / "pool"), devices=[4, 5])


@pytest.mark.usefixtures("_no_pause")
def test_a_job_that_passes_its_deadline_is_lost(app: Path) -> None:
    async def use(pool: LocalPool) -> Finished:
        return await pool.run(JobSpec("accept", {}, await pool.add(load_task(app)), deadline_s=0.2))

    with pytest.raises(JobLate, match=r"was at work for 0\.2 s"):
        on_a_pool(use, tries=1)


def test_a_full_queue_makes_the_next_wait() -> None:
    async def use(pool: LocalPool) -> int:
        most = 0

        async def one(number: int) -> None:
            nonlocal most
            await pool.run(health(number))
            most = max(most, len(list((pool.folder.path / "results").iterdir())), *begun(pool))

        await asyncio.gather(*(one(number) for number in range(12)))
        return most

    def begun(pool: LocalPool) -> list[int]:
        counts = pool.board.counts
        return [sum(counts[stage] for stage in ("waiting", "working", "building", "running"))]

    assert on_a_pool(use, queue=2, at_once=8) <= 2


def test_waiting_for_others_is_not_counted_against_a_deadline(app: Path) -> None:
    async def use(pool: LocalPool) -> Finished:
        archive = await pool.add(load_task(app))
        await pool.run(JobSpec("brief", {}, archive))
        async with slot("cpu", available_cores()):
            job = asyncio.create_task(
                pool.run(JobSpec("brief", {"again": 1}, archive, deadline_s=1.5)), context=Context()
            )
            await asyncio.sleep(2.0)
        return await job

    done = on_a_pool(use)
    assert done.times.waiting_s > 1.5


def test_one_archive_is_unpacked_once_and_a_damaged_one_is_the_machines_fault(app: Path, tmp_path: Path) -> None:
    folder = PoolFolder(tmp_path / "pool")
    digest = put(load_task(app), folder)
    archive = folder.path / "archives" / f"{digest}.tar.gz"
    whole = archive.read_bytes()

    async def work() -> list[object]:
        worker = Worker(folder, open_sandbox(), "one")
        archive.write_bytes(whole[:-20])
        failed = await asyncio.gather(worker.task(digest), worker.task(digest), return_exceptions=True)
        archive.write_bytes(whole)
        found = await asyncio.gather(worker.task(digest), worker.task(digest))
        await worker.close()
        return [*failed, found[0] is found[1]]

    first, second, same = asyncio.run(work())
    assert isinstance(first, JobFault)
    assert isinstance(second, JobFault)
    assert same


def test_equal_content_gives_one_archive_whatever_check_found(app: Path, tmp_path: Path) -> None:
    folder = PoolFolder(tmp_path / "pool")
    task = load_task(app)
    before = put(task, folder)
    remember(task, "native", {"accepted": True})
    assert put(task, folder) == before
    unpacked, accepted = unpack(folder, before, tmp_path / "unpacked")
    assert unpacked.fingerprint == task.fingerprint
    assert accepted == {"arch": "native", "acceptance": {"accepted": True}}


def test_a_folder_has_one_driver(tmp_path: Path) -> None:
    folder = PoolFolder(tmp_path / "pool")

    async def use(_: LocalPool) -> None:
        with pytest.raises(UsageError, match="is driven by another process"):
            async with LocalPool(open_sandbox(), folder):
                pass

    on_a_pool(use, folder)


def test_who_gives_up_ends_the_job_and_the_pool_leaves_nothing(app: Path, home: Path) -> None:
    async def use(pool: LocalPool) -> None:
        archive = await pool.add(load_task(app))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await pool.run(JobSpec("accept", {}, archive))
        await pool.run(health(1))

    on_a_pool(use)
    assert list((state_home() / "work").iterdir()) == []
    assert list((state_home() / "pools").iterdir()) == []


def test_the_command_writes_a_result_that_every_pool_finds(app: Path, tmp_path: Path) -> None:
    folder = PoolFolder(tmp_path / "pool")

    async def add(pool: LocalPool) -> str:
        return await pool.add(load_task(app))

    payload = {
        "rollout": "r/1",
        "seed": "0",
        "tools": ["list_dir"],
        "call": {"id": "1", "name": "list_dir", "arguments": {}},
        "content": "",
        "known": {},
    }
    spec = JobSpec("tool", payload, on_a_pool(add, folder))
    folder.put("specs", spec.id, spec.to_json())
    command = [sys.executable, "-m", "kernelwright.pool.job", folder.path / "specs" / f"{spec.id}.json"]
    done = subprocess.run([*command, "--folder", folder.path], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    found = folder.result(spec.id)
    assert found is not None
    assert "Makefile" in Message.from_json(found.result).content

    async def again(pool: LocalPool) -> Finished:
        return await pool.run(spec)

    assert on_a_pool(again, folder) == found
