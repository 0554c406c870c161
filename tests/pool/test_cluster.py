"""The pool of a cluster, on the real thing: Parsl's workers on this machine, and a Slurm of one node."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from one_node_slurm import Slurm, missing, one_node_slurm, processes_of

from kernelwright.errors import InfrastructureError, UsageError
from kernelwright.pool import JobSpec
from kernelwright.pool.archive import put
from kernelwright.pool.config import EXAMPLES, parse_config
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.remote import GIVEN, claimed, see_only
from kernelwright.task_file import load_task
from kernelwright.tools import NAMES

pytest.importorskip("parsl", reason="Parsl is not installed: pip install 'kernelwright[cluster]'")

from kernelwright.pool.cluster import ClusterPool, blocks, watch
from kernelwright.pool.cluster.blocks import executor_of

ROOT = Path(__file__).parent.parent.parent
T = TypeVar("T")


def config_of(folder: Path, *more: str) -> Any:
    text = "\n".join(['kind = "local"', f"folder = {json.dumps(str(folder))}", *more])
    return parse_config(text, folder.parent / "pool.toml")


def on_a_cluster(use: Callable[[ClusterPool], Awaitable[T]], folder: Path, *more: str) -> T:
    async def work() -> T:
        async with ClusterPool(config_of(folder, *more)) as pool:
            return await use(pool)

    return asyncio.run(work())


def health(number: int, **more: Any) -> JobSpec:
    return JobSpec("health", {"number": number}, **more)


async def until(so: Callable[[], T], within_s: float = 60.0) -> T:
    end = time.monotonic() + within_s
    while not (found := so()):
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
    return found


def gone(folder: Path, within_s: float = 30.0) -> bool:
    """Whether no process that works for the pool is left, at latest after so long."""
    end = time.monotonic() + within_s
    while processes_of(folder):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def test_jobs_run_on_workers_and_leave_one_result_each(tmp_path: Path) -> None:
    async def use(pool: ClusterPool) -> list[str]:
        done = await asyncio.gather(*(pool.run(health(number % 8)) for number in range(16)))
        assert pool.board.counts["done"] == 8
        return sorted({each.id for each in done})

    ids = on_a_cluster(use, tmp_path / "pool", "workers_per_accelerator = 2")
    folder = PoolFolder(tmp_path / "pool")
    assert sorted(done.id for done in folder.results()) == ids
    assert {done.worker for done in folder.results()} == set(folder.all("workers"))
    assert gone(tmp_path / "pool")


def test_the_job_of_a_worker_that_is_killed_is_done_by_another_try(tmp_path: Path) -> None:
    folder = PoolFolder(tmp_path / "pool")
    slow = slow_spec(folder)

    def busy() -> int | None:
        return next((worker["pid"] for worker in folder.all("workers").values() if worker["job"] == slow.id), None)

    async def use(pool: ClusterPool) -> int:
        running = asyncio.create_task(pool.run(slow))
        os.kill(await until(busy), signal.SIGKILL)
        done = await running
        assert pool.board.counts["retried"] == 1
        return done.tries

    assert on_a_cluster(use, folder.path) == 2
    assert [done.tries for done in folder.results()] == [2]


def slow_spec(folder: PoolFolder) -> JobSpec:
    """A job of some seconds, since it builds and runs an original first."""
    return tool_specs(folder, ["list_dir"])[0]


def test_a_worker_whose_device_does_not_answer_takes_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "ALL_ASIDE_S", 0.0)
    monkeypatch.setattr(watch, "LOOK_S", 0.2)
    with pytest.raises(InfrastructureError, match=r"no worker is left.*-99: .*device 99 does not answer"):
        on_a_cluster(lambda pool: pool.run(health(1)), tmp_path / "pool", 'accelerators = ["99"]')


def test_a_worker_that_fails_again_and_again_is_put_aside_and_where_there_is_no_other_the_pool_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "ALL_ASIDE_S", 0.0)
    monkeypatch.setattr(watch, "LOOK_S", 0.2)

    async def use(pool: ClusterPool) -> None:
        lost = [JobSpec("brief", {"number": number}, "0" * 64) for number in range(3)]  # an archive that is not there
        results = await asyncio.gather(*map(pool.run, lost), return_exceptions=True)
        assert any("no worker is left" in str(each) for each in results), results
        with pytest.raises(InfrastructureError, match=r"no worker is left.*failures in a row"):
            await pool.run(health(7))

    on_a_cluster(use, tmp_path / "pool", "aside_after = 2", "tries = 5")
    assert list(PoolFolder(tmp_path / "pool").all("aside"))
    assert not PoolFolder(tmp_path / "pool").results()


def test_a_driver_whose_interchange_dies_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LOOK_S", 0.2)

    async def use(pool: ClusterPool) -> None:
        await pool.run(health(1))
        os.kill(pool._executor.interchange_proc.pid, signal.SIGKILL)
        with pytest.raises(InfrastructureError, match="interchange has ended"):
            await pool.run(health(2))

    on_a_cluster(use, tmp_path / "pool")
    assert gone(tmp_path / "pool")


@pytest.mark.long
def test_a_block_whose_queue_died_with_a_waiting_worker_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "STUCK_S", 3.0)

    async def use(pool: ClusterPool) -> int:
        await pool.run(health(1))
        (worker,) = await until(lambda: [one for one in pool.folder.all("workers").values() if one["state"] == "idle"])
        os.kill(worker["pid"], signal.SIGKILL)
        return (await pool.run(health(2))).tries

    assert on_a_cluster(use, tmp_path / "pool") == 2


CTRL_C = """
import asyncio, signal, sys
from pathlib import Path
from kernelwright.pool import JobSpec
from kernelwright.pool.cluster import ClusterPool
from kernelwright.pool.config import load_config

async def main() -> None:
    async with ClusterPool(load_config(Path(sys.argv[1]))) as pool:
        await pool.run(JobSpec("health", {"number": 1}))
        print("ready", flush=True)
        await asyncio.Event().wait()

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background has it ignored
asyncio.run(main())
"""


def test_ctrl_c_ends_the_driver_and_all_that_it_started(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text(EXAMPLES["local"])
    command = [sys.executable, "-c", CTRL_C, str(tmp_path / "pool.toml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"ready\n"
        os.killpg(driver.pid, signal.SIGINT)
        assert b"KeyboardInterrupt" in driver.communicate(timeout=60)[1]
    assert gone(tmp_path / "pool")


def test_a_result_that_is_there_is_adopted_without_any_worker(tmp_path: Path) -> None:
    on_a_cluster(lambda pool: pool.run(health(1)), tmp_path / "pool")
    before = PoolFolder(tmp_path / "pool").results()

    async def again(pool: ClusterPool) -> dict[str, int]:
        assert await pool.run(health(1)) == before[0]
        return pool.board.counts

    assert on_a_cluster(again, tmp_path / "pool", "min_blocks = 0", "init_blocks = 0")["adopted"] == 1


def test_blocks_that_do_not_start_are_an_error_and_no_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "POLL_S", 1)
    with pytest.raises(InfrastructureError, match="the blocks of workers fail"):
        on_a_cluster(lambda pool: pool.run(health(1)), tmp_path / "pool", 'worker_init = "exit 7"')


@pytest.mark.parametrize("kind", [kind for kind in EXAMPLES if kind not in ("kubernetes", "flux")])
def test_the_example_of_a_kind_becomes_what_submits_it(kind: str, tmp_path: Path) -> None:
    config = parse_config(EXAMPLES[kind], tmp_path / "pool.toml")
    executor = executor_of(config, tmp_path)
    provider = executor.provider
    assert type(provider).__name__ == blocks.PROVIDERS[kind]
    assert (provider.max_blocks, provider.nodes_per_block) == (config.max_blocks, config.nodes_per_block)
    assert executor.available_accelerators == [name for name in config.lanes if name is not None]
    for key, value in config.scheduler.items():
        assert str(value) in str(getattr(provider, key))


def test_an_option_that_the_scheduler_s_provider_does_not_have_is_named_with_those_near(tmp_path: Path) -> None:
    text = EXAMPLES["slurm"].replace("partition =", "partitoin =")
    with pytest.raises(UsageError) as caught:
        executor_of(parse_config(text, tmp_path / "pool.toml"), tmp_path)
    assert "unknown key 'partitoin'" in str(caught.value)
    assert "partition" in caught.value.try_


def test_a_launcher_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown key 'SrunLaucher'"):
        executor_of(config_of(tmp_path / "pool", 'launcher = "SrunLaucher"'), tmp_path)


def test_a_worker_sees_one_accelerator_by_the_variables_of_both_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", GIVEN):
        monkeypatch.setenv(name, "5,3")
    assert see_only("1", by_index=True) == "3"
    assert (os.environ["CUDA_VISIBLE_DEVICES"], os.environ["HIP_VISIBLE_DEVICES"]) == ("3", "3")
    assert "ROCR_VISIBLE_DEVICES" not in os.environ
    assert see_only("1", by_index=False) == "1"


def test_no_two_workers_of_a_pool_have_one_name_and_a_dead_one_leaves_its(tmp_path: Path) -> None:
    first, lock = claimed(tmp_path, "0")
    second, other = claimed(tmp_path, "0")
    assert first != second
    lock.close()
    again, lock = claimed(tmp_path, "0")
    assert again == first
    lock.close()
    other.close()


def tool_specs(folder: PoolFolder, tools: list[str]) -> list[JobSpec]:
    """Tool calls on the example heat, each of them another one."""
    task = load_task(ROOT / "examples/heat")
    archive = put(task, folder)
    code = json.loads((ROOT / "examples/heat/candidates/better.json").read_text())["final_code"]
    arguments: dict[str, dict[str, Any]] = {
        "list_dir": {"path": "src"},
        "search": {"pattern": "double"},
        "file_viewer": {"path": "src/main.cpp"},
        "compiler_analysis": {},
        "benchmark_code": {"code": code},
    }
    return [
        JobSpec(
            "tool",
            {
                "rollout": f"r/{number}",
                "seed": f"0/{number}",
                "tools": list(NAMES),
                "call": {"id": str(number), "name": tool, "arguments": arguments[tool]},
                "content": "",
                "known": {},
            },
            archive,
            deadline_s=600.0,
        )
        for number, tool in enumerate(tools)
    ]


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with one_node_slurm(tmp_path / "slurm") as running:
        yield running


SLURM = """\
kind = "slurm"
folder = "pool"
address = "127.0.0.1"
init_blocks = 2
max_blocks = 2
walltime = "00:30:00"
[scheduler]
exclusive = false
cores_per_node = 1
"""


class Driver:
    """`kernelwright pool run` on that Slurm, as a process of its own."""

    def __init__(self, slurm: Slurm, place: Path) -> None:
        self.folder = PoolFolder(place / "pool")
        command = [sys.executable, "-m", "kernelwright", "pool", "run", str(place / "jobs"), "--json",
                   "--config", str(place / "pool.toml")]  # fmt: skip
        self.process = subprocess.Popen(
            command, env={**os.environ, **slurm.env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def until(self, so: Callable[[], T], within_s: float = 120.0) -> T:
        end = time.monotonic() + within_s
        while not (found := so()):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < end
            time.sleep(0.02)
        return found

    def results(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self.folder.path / "results").glob("*.json")}

    def has(self, count: int) -> Callable[[], bool]:
        return lambda: len(self.results()) >= count

    def count(self, what: str) -> int:
        return int(json.loads((self.folder.path / "status.json").read_text())["jobs"][what])

    def busy(self) -> int | None:
        workers = self.folder.all("workers").values()
        return next((worker["pid"] for worker in workers if worker["state"] != "idle"), None)


@pytest.mark.long
def test_on_a_slurm_that_loses_a_worker_its_blocks_and_the_driver_each_job_has_one_result(
    slurm: Slurm, tmp_path: Path
) -> None:
    specs = tool_specs(PoolFolder(tmp_path / "pool"), tools_mixed())
    assert len({spec.id for spec in specs}) == 200
    (tmp_path / "pool.toml").write_text(SLURM)
    (tmp_path / "jobs").write_text("".join(json.dumps(spec.to_json()) + "\n" for spec in specs))
    moments = [("start", time.monotonic())]

    def note(what: str) -> None:
        moments.append((what, time.monotonic()))

    first = Driver(slurm, tmp_path)
    first.until(first.has(1))
    note("first result")
    first.until(first.has(40))
    os.kill(first.until(first.busy), signal.SIGKILL)
    note("worker killed")
    first.until(lambda: first.count("retried") >= 1)
    note("its job is tried again")
    first.until(first.has(80))
    blocks_before = slurm.jobs()
    slurm.call("scancel", *blocks_before)
    note(f"{len(blocks_before)} blocks cancelled")
    first.until(lambda: set(slurm.jobs()) - set(blocks_before))
    note("another block")
    first.until(first.has(min(199, len(first.results()) + 10)))
    note("it works")
    first.process.kill()
    first.process.communicate()
    note("driver killed")
    assert gone(tmp_path / "pool")
    note("nothing left")
    kept = first.results()
    assert 90 <= len(kept) < 200

    second = Driver(slurm, tmp_path)
    out, err = second.process.communicate(timeout=300)
    note("all done")
    assert second.process.returncode == 0, err
    said = json.loads(out)
    assert (said["jobs"], said["results"], said["adopted"], said["failed"]) == (200, 200, len(kept), [])
    results = second.results()
    assert set(results) == {f"{spec.id}.json" for spec in specs}
    assert {name: results[name] for name in kept} == kept
    counts = json.loads((tmp_path / "pool/status.json").read_text())["jobs"]
    assert counts["done"] + counts["adopted"] == 200
    assert counts["done"] == 200 - len(kept)
    assert not [one for one in map(json.loads, results.values()) if one["error"] is not None]
    assert gone(tmp_path / "pool")
    assert not slurm.jobs()
    start = moments[0][1]
    print(*(f"{what}: {moment - start:.1f} s" for what, moment in moments[1:]), sep="\n")


def tools_mixed() -> list[str]:
    """200 calls, of which 25 build something."""
    quick = ["list_dir", "search", "file_viewer"]
    tools = [quick[number % 3] for number in range(200)]
    tools[5:200:13] = ["compiler_analysis"] * len(tools[5:200:13])
    tools[9:200:20] = ["benchmark_code"] * len(tools[9:200:20])
    return tools


FLUX = """
from pathlib import Path
from kernelwright.pool.cluster.blocks import executor_of, resources_of
from kernelwright.pool.config import EXAMPLES, parse_config

config = parse_config(EXAMPLES["flux"], Path("pool.toml"))
executor = executor_of(config, Path("runs"))
print(type(executor).__name__, executor.flux_path, resources_of(config))
"""


def test_the_example_of_flux_becomes_its_executor(tmp_path: Path) -> None:
    """In a process of its own, since Parsl joins a thread at the end that only `start` would start."""
    done = subprocess.run([sys.executable, "-c", FLUX], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip() == "FluxExecutor /usr/bin/flux {'num_tasks': 1, 'gpus_per_task': 1}", done.stderr


def test_on_a_flux_each_job_is_a_flux_job(tmp_path: Path) -> None:
    if (flux := shutil.which("flux")) is None:
        pytest.skip("there is no Flux on this machine")
    text = EXAMPLES["flux"].replace("/shared/pool", str(tmp_path / "pool")).replace("/usr/bin/flux", flux)
    config = parse_config(text.replace("accelerators = 1", "accelerators = 0"), tmp_path / "pool.toml")

    async def work() -> int:
        async with ClusterPool(config) as pool:
            await asyncio.gather(*(pool.run(health(number)) for number in range(3)))
            return pool.board.counts["done"]

    assert asyncio.run(work()) == 3


KUBE = """\
apiVersion: v1
kind: Config
current-context: none
clusters: [{name: none, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
"""


def kubernetes_provider(place: Path) -> Any:
    pytest.importorskip("kubernetes", reason="the package kubernetes is not installed")
    executor = executor_of(parse_config(EXAMPLES["kubernetes"], place / "pool.toml"), place)
    assert type(executor.provider).__name__ == blocks.PROVIDERS["kubernetes"]
    return executor.provider


def test_the_example_of_kubernetes_becomes_its_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = pytest.importorskip("kubernetes.config.kube_config", reason="the package kubernetes is not installed")
    (tmp_path / "kubeconfig").write_text(KUBE)
    monkeypatch.setattr(config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "kubeconfig"))
    provider = kubernetes_provider(tmp_path)
    assert provider.persistent_volumes == [("pool-claim", "/pool")]
    assert provider.extra_limits == {"nvidia.com/gpu": "1"}


def test_a_kubernetes_that_kubectl_reaches_is_asked_for_its_pods(tmp_path: Path) -> None:
    if shutil.which("kubectl") is None or subprocess.run(["kubectl", "cluster-info"], capture_output=True).returncode:
        pytest.skip("there is no Kubernetes that kubectl reaches")
    assert kubernetes_provider(tmp_path).status([]) == []
