"""What a tool call costs beyond the build and the runs that it is for, and what opening the sandbox costs.

    python benchmarks/overhead.py TASK [--calls N] [--json FILE]

Every job of a call is counted by the sandbox itself: `wall_s` is the command's own time, `outside_s` includes opening and
closing the room. The overhead of a call is its elapsed time less the commands' own time; both parts are given.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelwright.execute import Workshop
from kernelwright.sandbox import Job, JobResult, Sandbox
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.task_file import load_task
from kernelwright.toolbox import Toolbox
from kernelwright.tools import Bench
from kernelwright.trace import ToolCall
from kernelwright.trial import open_baseline


@dataclass
class Counting:
    """A sandbox that remembers what its jobs took."""

    inner: Sandbox
    results: list[JobResult] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.inner.name

    def inside(self, source: Path, inside: str) -> str:
        return self.inner.inside(source, inside)

    def own(self, folder: Path) -> None:
        self.inner.own(folder)

    async def run(self, job: Job) -> JobResult:
        result = await self.inner.run(job)
        self.results.append(result)
        return result


async def start_up(sandbox: Sandbox, count: int) -> list[float]:
    """Seconds that the sandbox adds to /bin/true, opening and closing it."""
    results = [await sandbox.run(Job(("/bin/true",), "/")) for _ in range(count)]
    return [result.outside_s - result.wall_s for result in results]


async def calls(path: Path, sandbox: Counting, count: int) -> list[dict[str, float]]:
    """One benchmark_code call after the other, each with another text of the first region."""
    task = load_task(path)
    async with Workshop(task, sandbox) as shop:
        bench = Bench(await open_baseline(shop, task.shown, lambda _: None), random.Random(0), lambda _: None)
        name, span = next(iter(shop.spans.items()))
        box = Toolbox(bench.tools(["benchmark_code"]), {name: span.text}, task.language)
        rows = []
        for number in range(count):
            sandbox.results.clear()
            code = {name: f"{span.text}\n/* {number} */"}
            start = time.perf_counter()
            message = await box.call(ToolCall("1", "benchmark_code", {"code": code}), "")
            elapsed = time.perf_counter() - start
            if message.data["outcome"] != "correct":
                raise SystemExit(f"the unchanged region is called {message.data['outcome']}: {message.content}")
            own = sum(result.wall_s for result in sandbox.results)
            outside = sum(result.outside_s for result in sandbox.results)
            rows.append(
                {
                    "elapsed_s": elapsed,
                    "commands_s": own,
                    "sandbox_s": outside - own,
                    "rest_s": elapsed - outside,
                    "jobs": len(sandbox.results),
                }
            )
        return rows


async def measured(path: Path, count: int) -> dict[str, Any]:
    sandbox = open_sandbox()
    opening = await start_up(sandbox, 200)
    rows = await calls(path, Counting(sandbox), count)
    middle = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    overhead = statistics.median(row["elapsed_s"] - row["commands_s"] for row in rows)
    return {
        "task": path.name,
        "calls": count,
        "sandbox_start_up_s": statistics.median(opening),
        "median": middle,
        "overhead_s": overhead,
        "overhead_share": overhead / middle["commands_s"],
        "rows": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", type=Path)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = asyncio.run(measured(asked.task, asked.calls))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")
    middle = found["median"]
    print(f"opening the sandbox           {found['sandbox_start_up_s'] * 1e3:8.1f} ms (median of 200)")
    print(
        f"a call, median of {found['calls']:<4}        {middle['elapsed_s'] * 1e3:8.1f} ms, {middle['jobs']:.0f} jobs"
    )
    print(f"  build and runs themselves   {middle['commands_s'] * 1e3:8.1f} ms")
    print(f"  opening the sandbox         {middle['sandbox_s'] * 1e3:8.1f} ms")
    print(f"  all else                    {middle['rest_s'] * 1e3:8.1f} ms")
    share = f"{found['overhead_share']:.1%} of build and runs"
    print(f"overhead                      {found['overhead_s'] * 1e3:8.1f} ms, {share}")


if __name__ == "__main__":
    main()
