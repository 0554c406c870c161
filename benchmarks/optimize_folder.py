"""`optimize --policy rules` over a folder of tasks, several at a time on one pool, and what it all comes to.

    python benchmarks/optimize_folder.py TASKS FILE.jsonl [--max-calls 10] [--sample 20 --seed 1] [--at-once 6]

One line a task, as `kernelwright optimize --json` prints it; the same command again goes on with the tasks that have no
line. The table at the end has both means with their intervals, and the success rate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from kernelwright import runner
from kernelwright.errors import KernelwrightError
from kernelwright.means import means
from kernelwright.policy.rules import RulesPolicy
from kernelwright.pool.local import LocalPool
from kernelwright.runner import Options, Watcher
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.store import Store
from kernelwright.suites.mass import sampled, task_files
from kernelwright.task_file import load_task


async def optimize_all(files: list[Path], given: argparse.Namespace) -> None:
    room = asyncio.Semaphore(given.at_once)

    async def one(path: Path, pool: LocalPool, store: Store) -> None:
        async with room:
            started = time.monotonic()
            found = await optimized(path, pool, store, given)
            line = {"file": path.relative_to(given.tasks).as_posix(), "seconds": time.monotonic() - started, **found}
            with given.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(line["file"], found.get("comparison"), found.get("speedup"), file=sys.stderr, flush=True)

    with Store.open() as store:
        async with LocalPool(open_sandbox()) as pool:
            await asyncio.gather(*(one(path, pool, store) for path in files))


async def optimized(path: Path, pool: LocalPool, store: Store, given: argparse.Namespace) -> dict[str, Any]:
    """The result, or the failure of the task's own (a machine's ends everything)."""
    options = Options("rules", max_calls=given.max_calls)
    try:
        task = load_task(path)
        verify = task.verify.model_copy(update={"budget_s": given.budget_s})
        task = task.model_copy(update={"verify": verify})
        run = store.create_run("optimize", str(path), runner.options_json(options), {"task": task.name})
        return await runner.optimize(task, pool, RulesPolicy(), options, store, run, Watcher())
    except KernelwrightError as error:
        return error.to_json()


def table(rows: list[dict[str, Any]]) -> str:
    judged = [row for row in rows if "error" not in row]
    speedups = [row["speedup"] if row["outcome"] == "correct" else None for row in judged]
    found = means(speedups, sum(row["comparison"] == "faster" for row in judged))
    lines = [f"{row['file']:40} {row['comparison'] or row['outcome']:12} {row['speedup'] or 0:.3f}" for row in judged]
    lines += [f"{row['file']:40} {row['error']['what'][:120]}" for row in rows if "error" in row]
    for name, mean in (("arithmetic, failures 0", found.paper), ("geometric, failures and losses 1", found.gain)):
        bounds = f" [{mean.interval.low:.3f}, {mean.interval.high:.3f}]" if mean.interval else ""
        lines.append(f"{name}: {mean.value:.3f}{bounds}")
    return "\n".join([*lines, f"{found.faster} of {found.tasks} proven faster; {len(rows) - len(judged)} tasks failed"])


def main() -> int:
    parser = argparse.ArgumentParser(description="The rules policy over a folder of tasks.")
    parser.add_argument("tasks", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--max-calls", type=int, default=10)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--budget-s", type=float, default=60.0, help="for the proof of each task")
    parser.add_argument("--only", action="append", help="a task file's name without .toml")
    given = parser.parse_args()
    files = sampled(task_files(given.tasks), given.sample, given.seed)
    files = [path for path in files if not given.only or path.stem in given.only]
    lines = given.file.read_text(encoding="utf-8").splitlines() if given.file.exists() else []
    done = {json.loads(line)["file"] for line in lines}
    asyncio.run(optimize_all([path for path in files if path.relative_to(given.tasks).as_posix() not in done], given))
    print(table([json.loads(line) for line in given.file.read_text(encoding="utf-8").splitlines()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
