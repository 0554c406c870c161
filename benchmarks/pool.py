"""What a pool adds to a job, how soon it begins, how many jobs it does in a second, and whether its memory stays flat.

    python benchmarks/pool.py [--jobs N] [--rounds N] [--config POOL.toml] [--sandbox NAME] [--json FILE]

The job is the smallest real one, of kind health: it opens the sandbox around /bin/true. In each round the same is done by the
sandbox alone, by a local pool that keeps results in memory, by one that keeps them on disk, and, where a configuration is
given, by the warm pool of that; in random order, one after the other. The overhead is the median of the differences within
a round. Throughput: the same many at a time, the sandbox alone before and after the pools.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from kernelwright.pool import JobSpec
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.local import LocalPool
from kernelwright.sandbox import Job, Limits, Sandbox
from kernelwright.sandbox.backends import NAMES, open_sandbox
from kernelwright.slots import available_cores

Once = Callable[[], Awaitable[Any]]
AT_ONCE = 1000
"""Jobs that a pool is given at a time: the length of its queue."""
SAMPLE_S = 0.05


class Bench:
    """The ways of doing one job, each with jobs that nobody did before."""

    def __init__(self, sandbox: Sandbox, scratch: Path, config: Path | None) -> None:
        self.sandbox, self.scratch, self.config = sandbox, scratch, config
        self._numbers = itertools.count()
        # Before the pools', so that each has as many at work as the others.
        self.at_once = max(2, len(available_cores()) + 1)

    async def alone(self) -> None:
        result = await self.sandbox.run(Job(("/bin/true",), "/", limits=Limits(wall_s=20.0)))
        if result.exit_code != 0:
            raise SystemExit("the sandbox does not run /bin/true")

    def through(self, pool: Any) -> Once:
        return lambda: pool.run(JobSpec("health", {"number": next(self._numbers)}))

    def folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.scratch))

    def pools(self) -> dict[str, Callable[[], AbstractAsyncContextManager[Any]]]:
        """How to open each kind of pool."""
        opened: dict[str, Callable[[], AbstractAsyncContextManager[Any]]] = {
            "local": lambda: LocalPool(self.sandbox, devices=[]),
            "local, kept": lambda: LocalPool(self.sandbox, PoolFolder(self.folder()), devices=[]),
        }
        if self.config is not None:
            from kernelwright.pool.cluster import ClusterPool
            from kernelwright.pool.config import load_config

            loaded = load_config(self.config)
            opened[f"cluster ({loaded.kind})"] = lambda: ClusterPool(
                loaded.model_copy(update={"folder": self.folder()})
            )
        return opened


async def latencies(bench: Bench, rounds: int, rng: random.Random) -> dict[str, Any]:
    """Seconds of one job in each way, and what that is beyond the sandbox alone in the same round."""
    async with AsyncExitStack() as stack:
        ways: dict[str, Once] = {"sandbox alone": bench.alone}
        for name, opening in bench.pools().items():
            ways[name] = bench.through(await stack.enter_async_context(opening()))
        for once in ways.values():
            await once()
        rows = []
        for _ in range(rounds):
            row = {}
            for name in rng.sample(list(ways), len(ways)):
                row[name] = (await timed(ways[name]))[1]
            rows.append(row)
    alone = [row["sandbox alone"] for row in rows]
    found = {}
    for name in ways:
        own = [row[name] for row in rows]
        found[name] = {
            "median_s": statistics.median(own),
            "ratio": statistics.median(own) / statistics.median(alone),
            "overhead_s": statistics.median(a - b for a, b in zip(own, alone, strict=True)),
            "samples_s": own,
        }
    return found


async def first_jobs(bench: Bench, times: int) -> dict[str, Any]:
    """Seconds from nothing to the first result: the pool opened and one job done."""
    found = {}
    for name, opening in bench.pools().items():
        samples = []
        for _ in range(times):
            start = time.perf_counter()
            async with opening() as pool:
                await bench.through(pool)()
                samples.append(time.perf_counter() - start)
        found[name] = {"median_s": statistics.median(samples), "samples_s": samples}
    return found


async def throughput(bench: Bench, jobs: int) -> dict[str, Any]:
    """Jobs in a second, many at a time, and this process' memory meanwhile."""
    few = max(20, jobs // 10)
    before = await rate(bench.alone, few, bench.at_once)
    found: dict[str, Any] = {}
    for name, opening in bench.pools().items():
        async with opening() as pool:
            await bench.through(pool)()
            memory: list[int] = []
            sampling = asyncio.create_task(sample(memory))
            found[name] = await rate(bench.through(pool), jobs, AT_ONCE)
            sampling.cancel()
            with suppress(asyncio.CancelledError):
                await sampling
            tenth = max(1, len(memory) // 10)
            found[name] |= {
                "first_tenth_bytes": int(statistics.median(memory[:tenth])),
                "last_tenth_bytes": int(statistics.median(memory[-tenth:])),
                "most_bytes": max(memory),
                "done": pool.board.counts["done"],
            }
            if pool.board.counts["done"] != jobs + 1:
                raise SystemExit(f"{name}: {pool.board.counts} after {jobs + 1} jobs")
    after = await rate(bench.alone, few, bench.at_once)
    both = (before["jobs"] + after["jobs"]) / (before["seconds"] + after["seconds"])
    for row in found.values():
        row["per_job_beyond_s"] = 1 / row["per_s"] - 1 / both
    return {"sandbox alone": {"per_s": both, "before": before, "after": after, "at_once": bench.at_once}, **found}


async def rate(once: Once, jobs: int, at_once: int) -> dict[str, Any]:
    left = iter(range(jobs))

    async def feed() -> None:
        for _ in left:
            await once()

    start = time.perf_counter()
    await asyncio.gather(*(feed() for _ in range(min(at_once, jobs))))
    passed = time.perf_counter() - start
    return {"jobs": jobs, "seconds": passed, "per_s": jobs / passed}


async def sample(into: list[int]) -> None:
    """This process' resident memory in bytes, again and again (proc(5), statm)."""
    page = os.sysconf("SC_PAGE_SIZE")
    while True:
        into.append(int(Path("/proc/self/statm").read_text().split()[1]) * page)
        await asyncio.sleep(SAMPLE_S)


async def timed(once: Once) -> tuple[Any, float]:
    start = time.perf_counter()
    done = await once()
    return done, time.perf_counter() - start


async def measured(asked: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=asked.scratch) as scratch:
        bench = Bench(open_sandbox(asked.sandbox), Path(scratch), asked.config)
        return {
            "sandbox": bench.sandbox.name,
            "cores": len(available_cores()),
            "jobs": asked.jobs,
            "first_job": await first_jobs(bench, asked.first),
            "latency": await latencies(bench, asked.rounds, random.Random(asked.seed)),
            "throughput": await throughput(bench, asked.jobs),
        }


def table(found: dict[str, Any]) -> str:
    lines = [
        f"{found['sandbox']}, {found['cores']} cores",
        "",
        f"{'one job':24}{'median':>12}{'ratio':>8}{'overhead':>12}",
    ]
    for name, row in found["latency"].items():
        lines.append(f"{name:24}{row['median_s'] * 1e3:9.2f} ms{row['ratio']:8.2f}{row['overhead_s'] * 1e3:9.2f} ms")
    lines += ["", f"{'to the first result':24}{'median':>12}"]
    lines += [f"{name:24}{row['median_s'] * 1e3:9.0f} ms" for name, row in found["first_job"].items()]
    lines += ["", f"{found['jobs']:<8,}{'jobs':16}{'jobs/s':>12}{'beyond':>12}{'memory, first and last tenth':>34}"]
    for name, row in found["throughput"].items():
        more = ""
        if "per_job_beyond_s" in row:
            first, last = row["first_tenth_bytes"] / 2**20, row["last_tenth_bytes"] / 2**20
            more = f"{row['per_job_beyond_s'] * 1e3:9.2f} ms{first:18.1f} → {last:.1f} MiB"
        lines.append(f"{name:24}{row['per_s']:12.1f}{more}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000, help="short jobs of the throughput run")
    parser.add_argument("--rounds", type=int, default=200, help="of one job in each way")
    parser.add_argument("--first", type=int, default=5, help="times that each pool is opened")
    parser.add_argument("--config", type=Path, help="a pool's configuration, to be measured as well")
    parser.add_argument("--sandbox", choices=NAMES, default="auto")
    parser.add_argument(
        "--scratch", type=Path, help="where the pools' folders are made (default: the temporary folder)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = asyncio.run(measured(asked))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
