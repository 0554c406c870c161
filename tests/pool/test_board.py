"""What a pool says of itself: each job in one place, memory flat, a file that others read, the same as Prometheus text."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from kernelwright.errors import JobFault, UsageError
from kernelwright.pool import Finished, JobSpec, Times
from kernelwright.pool.board import LIVE, STATUS, Board, announced, born
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.spread import BOUNDS_S, Spread
from kernelwright.pool.status import SILENT_S, merged, own_pools, prometheus

FAULT = JobFault("the disk is full", "free space", "free some")


def spec(number: int) -> JobSpec:
    return JobSpec("health", {"number": number})


def finished(of: JobSpec, worker: str = "cores", **times: float) -> Finished:
    return Finished(of.id, of.kind, {}, None, worker, Times(**times), 1.0)


@pytest.fixture
def folder(tmp_path: Path) -> PoolFolder:
    return PoolFolder(tmp_path / "pool")


@pytest.fixture
def board(folder: PoolFolder) -> Board:
    return Board("local", folder, ["cores", "device-1"])


def test_a_job_is_counted_where_it_is(board: Board) -> None:
    job = spec(1)

    def at() -> list[str]:
        return [state for state in LIVE if board.counts[state]]

    board.queued(job)
    assert at() == ["queued"]
    board.begun(job, "cores")
    assert at() == ["working"]
    for stage in ("waiting", "building", "running"):
        board.stage(job.id, stage)
        assert at() == [stage]
        worker = board.snapshot()["workers"]["cores"]
        assert (worker["state"], worker["job"]) == (stage, job.id)
    board.done(finished(job, queued_s=2.0, running_s=3.0))
    assert at() == []
    snapshot = board.snapshot()
    assert (snapshot["jobs"]["done"], snapshot["workers"]["cores"]["done"]) == (1, 1)
    assert snapshot["workers"]["cores"]["state"] == "idle"
    assert snapshot["kinds"]["health"]["queued_s"]["mean_s"] == 2.0
    assert snapshot["kinds"]["health"]["running_s"]["max_s"] == 3.0


def test_a_worker_with_several_jobs_is_at_the_furthest_of_them(board: Board) -> None:
    for number, stage in enumerate(("waiting", "running", "building")):
        board.begun(spec(number), "device-1")
        board.stage(spec(number).id, stage)
    worker = board.snapshot()["workers"]["device-1"]
    assert (worker["state"], worker["job"], worker["jobs"]) == ("running", spec(1).id, 3)


def test_what_the_machine_fails_is_queued_again_and_at_last_failed(board: Board) -> None:
    board.queued(spec(1))
    for _ in range(2):
        board.begun(spec(1), "cores")
        board.retried(spec(1), FAULT)
        assert board.counts["queued"] == 1
    board.begun(spec(1), "device-1")
    board.failed(spec(1), FAULT)
    snapshot = board.snapshot()
    assert {state: count for state, count in snapshot["jobs"].items() if count} == {"failed": 1, "retried": 2}
    assert [snapshot["workers"][name]["failed"] for name in ("cores", "device-1")] == [2, 1]
    assert [each["last"] for each in snapshot["failures"]] == [False, False, True]
    assert snapshot["failures"][0]["what"] == "the disk is full"


def test_a_result_that_was_there_is_adopted_and_its_times_are_not_ours(board: Board) -> None:
    board.queued(spec(1))
    board.adopted(finished(spec(1), total_s=9.0))
    board.done(finished(spec(2), total_s=9.0))
    assert (board.counts["adopted"], board.counts["done"], board.counts["queued"]) == (2, 0, 0)
    assert board.snapshot()["kinds"] == {}


def test_a_worker_that_is_put_aside_says_why_once_its_jobs_are_gone(board: Board) -> None:
    board.begun(spec(1), "cores")
    board.aside("cores", "its device does not answer")
    assert board.snapshot()["workers"]["cores"]["state"] == "working"
    board.dropped(spec(1).id)
    worker = board.snapshot()["workers"]["cores"]
    assert (worker["state"], worker["reason"]) == ("aside", "its device does not answer")


STEPS = st.tuples(
    st.sampled_from(["queued", "begun", "working", "waiting", "building", "running", "done", "adopted", "retried", "failed",
                     "dropped"]),
    st.integers(0, 4),
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(STEPS, max_size=60))
def test_whatever_happens_each_job_is_in_one_place(steps: list[tuple[str, int]]) -> None:
    board, model = Board("local", object.__new__(PoolFolder)), dict[str, str]()
    for step, number in steps:
        job = spec(number)
        if step in ("done", "adopted"):
            getattr(board, step)(finished(job))
        elif step in ("retried", "failed"):
            getattr(board, step)(job, FAULT)
        elif step == "begun":
            board.begun(job, f"worker-{number % 2}")
        elif step == "queued":
            board.queued(job)
        elif step == "dropped":
            board.dropped(job.id)
        else:
            board.stage(job.id, step)  # type: ignore[arg-type]
        if step in ("queued", "retried"):
            model[job.id] = "queued"
        elif step == "begun":
            model[job.id] = "working"
        elif step in ("done", "adopted", "failed", "dropped"):
            model.pop(job.id, None)
        elif model.get(job.id, "queued") != "queued":
            model[job.id] = step
    assert {state: board.counts[state] for state in LIVE} == {
        state: list(model.values()).count(state) for state in LIVE
    }
    assert sum(len(worker.jobs) for worker in board._workers.values()) == sum(at != "queued" for at in model.values())


def test_memory_does_not_grow_with_the_jobs_that_are_done(board: Board) -> None:
    tracemalloc.start()
    try:
        for number in range(10_000):
            job = spec(number)
            board.queued(job)
            board.begun(job, "cores")
            board.stage(job.id, "building")
            board.done(finished(job, building_s=number / 1e4, total_s=number / 1e4))
            if number == 1000:
                early = tracemalloc.get_traced_memory()[0]
        late = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert late - early < 32_768
    assert board.snapshot()["kinds"]["health"]["total_s"]["count"] == 10_000


@given(st.lists(st.floats(0, 5000), min_size=1, max_size=80), st.sampled_from([0.25, 0.5, 0.95, 1.0]))
def test_a_quantile_lies_in_the_bucket_of_the_true_one(times: list[float], share: float) -> None:
    spread = Spread()
    for each in times:
        spread.add(each)
    found = spread.quantile(share)
    assert found is not None
    true = sorted(times)[max(0, -int(-share * len(times) // 1) - 1)]
    low = max((bound for bound in (0.0, *BOUNDS_S) if bound < true), default=0.0)
    high = min((bound for bound in BOUNDS_S if bound >= true), default=max(times))
    assert low <= found <= min(high, max(times))
    assert (spread.count, spread.max_s) == (len(times), max(times))


def test_nothing_seen_has_no_quantile() -> None:
    assert Spread().quantile(0.5) is None


def test_the_file_is_there_from_the_start_and_says_when_it_ended(board: Board, folder: PoolFolder, home: Path) -> None:
    async def drive() -> None:
        board.queued(spec(1))
        async with board.kept():
            found = merged(folder.path)
            assert (found["driver"]["state"], found["jobs"]["queued"]) == ("alive", 1)
            assert own_pools() == [folder.path.resolve()]
            board.done(finished(spec(1)))

    asyncio.run(drive())
    data = merged(folder.path)
    assert (data["driver"]["state"], data["jobs"]["done"], data["jobs"]["queued"]) == ("ended", 1, 0)
    assert own_pools() == []
    assert sorted(path.name for path in folder.path.iterdir()) == [
        "archives", "aside", "results", "specs", STATUS, "workers",
    ]  # fmt: skip


def test_what_drivers_that_were_killed_left_is_removed_by_the_next(home: Path, tmp_path: Path) -> None:
    code = (
        "import os; from pathlib import Path; from kernelwright.pool.board import announced\n"
        f"with announced(Path({str(tmp_path / 'dead')!r})): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert own_pools() == [tmp_path / "dead"]
    with announced(tmp_path / "new"):
        assert own_pools() == [tmp_path / "new"]


def written(folder: PoolFolder, board: Board, **changes: Any) -> dict[str, Any]:
    data = {**board.snapshot(), **changes}
    (folder.path / STATUS).write_text(json.dumps(data))
    return data


def test_a_driver_that_is_no_more_is_gone_even_where_its_number_is_taken(board: Board, folder: PoolFolder) -> None:
    data = written(folder, board)
    assert merged(folder.path)["driver"]["state"] == "alive"
    written(folder, board, driver={**data["driver"], "born": 1})
    found = merged(folder.path)
    assert found["driver"]["state"] == "gone"
    assert {worker["state"] for worker in found["workers"].values()} == {"gone"}


def test_a_driver_elsewhere_lives_as_long_as_it_is_heard_of(board: Board, folder: PoolFolder) -> None:
    far = {"pid": 1, "host": "another-machine", "born": 5}
    data = written(folder, board, driver=far)
    assert merged(folder.path)["driver"]["state"] == "alive"
    written(folder, board, driver=far, updated=data["updated"] - SILENT_S - 1)
    assert merged(folder.path)["driver"]["state"] == "silent"


def test_on_a_cluster_the_workers_say_what_the_driver_cannot_know(board: Board, folder: PoolFolder) -> None:
    for number in range(6):
        board.queued(spec(number))
    written(folder, board)
    here = {"host": socket.gethostname(), "since": 1.0, "done": 4, "failed": 1}

    def at_work(name: str, number: int, state: str, **more: Any) -> None:
        folder.put("workers", name, {"worker": name, "pid": os.getpid(), "job": spec(number).id, "state": state,
                                     **here, **more})  # fmt: skip

    at_work("a", 0, "building")
    at_work("b", 1, "running", host="another-machine", pid=1)
    at_work("killed", 2, "running", pid=2**22 + 1)
    at_work("over", 3, "running")
    folder.keep(finished(spec(3), "over"))
    folder.put("aside", "sick", {"worker": "sick", "reason": "device 0 does not answer", "since": 1.0})
    found = merged(folder.path)
    assert {state: count for state, count in found["jobs"].items() if count} == {
        "queued": 4, "building": 1, "running": 1,
    }  # fmt: skip
    states = {name: worker["state"] for name, worker in found["workers"].items()}
    assert states["killed"] == "gone"
    assert (states["sick"], found["workers"]["sick"]["reason"]) == ("aside", "device 0 does not answer")
    assert (states["a"], found["workers"]["a"]["done"]) == ("building", 4)


def test_a_folder_without_a_count_has_its_results(folder: PoolFolder) -> None:
    folder.keep(finished(spec(1)))
    found = merged(folder.path)
    assert (found["jobs"]["done"], found["driver"]["state"]) == (1, "gone")
    assert prometheus(found)


def test_another_folder_is_refused_with_a_word(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no pool's folder"):
        merged(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_count_of_another_version_is_refused_with_a_word(board: Board, folder: PoolFolder) -> None:
    written(folder, board, schema=2)
    with pytest.raises(UsageError, match="another version"):
        merged(folder.path)


def test_a_number_without_a_process_has_no_birth() -> None:
    assert born(os.getpid()) == born(os.getpid()) is not None
    assert born(2**22 + 1) is None


def test_prometheus_reads_the_same_numbers(tmp_path: Path) -> None:
    names = ["plain", 'quo"te\\back\nline ü']
    told = []
    for name in names:
        folder = PoolFolder(tmp_path / name)
        board = Board("local", folder, ["cores"])
        for number in range(7):
            board.queued(spec(number))
        board.begun(spec(0), "cores")
        board.stage(spec(0).id, "running")
        for number, seconds in ((1, 0.01), (2, 0.3), (3, 4000.0)):
            board.done(finished(spec(number), total_s=seconds))
        board.failed(spec(4), FAULT)
        written(folder, board)
        told.append(merged(folder.path))
    text = prometheus(*told)
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert all(family.documentation and family.type != "unknown" for family in families.values())
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert len(samples) == text.count("\n") - 2 * len(families)
    for name in names:

        def value(metric: str, of: str = name, **labels: str) -> float:
            chosen = sorted({"folder": str(tmp_path / of), **labels}.items())
            return samples[f"kernelwright_pool_{metric}", *chosen]

        assert {state: value("jobs", state=state) for state in LIVE} == {
            state: {"queued": 2, "running": 1}.get(state, 0) for state in LIVE
        }
        assert value("ended_jobs_total", how="done") == 3
        assert value("ended_jobs_total", how="failed") == 1
        assert value("job_seconds_count", kind="health", part="total") == 3
        assert value("job_seconds_sum", kind="health", part="total") == pytest.approx(4000.31)
        cumulative = [
            value("job_seconds_bucket", kind="health", part="total", le=le) for le in ("0.02", "0.5", "1800.0")
        ]
        assert cumulative == [1, 2, 2]
        assert value("job_seconds_bucket", kind="health", part="total", le="+Inf") == 3
        assert value("worker_state", worker="cores", state="running") == 1
        assert value("driver_state", state="alive") == 1
        assert value("worker_jobs_total", worker="cores", how="done") == 3
