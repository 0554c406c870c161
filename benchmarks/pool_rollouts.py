"""Many rollouts on one machine: with overlap against without, and whether builds beside a timed run make it noisier.

    python benchmarks/pool_rollouts.py TASK FILE.jsonl [--rollouts 64] [--blocks 6] [--pairs 8] [--part overlap|alone|noise]

Each rollout is scripted: a candidate that does not compile, a question to compiler_analysis or a candidate that is built,
checked and timed, and an answer. `overlap` has all of them under way at once, `alone` one after the other; the same
calls, texts that differ in a comment, so that no build is found. It records when each job held the device: no two may
have at once. `noise` times the unchanged program against itself by the protocol's pairs, in blocks that alternate
between nothing beside it and builds that keep all other cores busy. One line a part, and a table of all lines at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kernelwright.briefing import Brief
from kernelwright.execute import Workshop
from kernelwright.measure import Budget, Pair
from kernelwright.policy.scripted import Scripted
from kernelwright.pool import JobSpec, Stage
from kernelwright.pool.local import LocalPool
from kernelwright.pool.rollouts import PooledTools
from kernelwright.rollout import RolloutLimits, rollout
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.slots import available_cores
from kernelwright.stats import Schedule
from kernelwright.task import Task
from kernelwright.task_file import load_task
from kernelwright.trace import Message, ToolCall
from kernelwright.trial import compare, open_baseline

PARTS = ("overlap", "alone", "noise")
MARK = itertools.count()
STAMP = f"{time.time():.3f}"


def fresh(text: str) -> str:
    """The same code as nobody has built it before."""
    return f"{text.rstrip()}\n// {STAMP} {next(MARK)}\n"


def script(number: int, regions: dict[str, str]) -> list[Message | str]:
    """A call that fails to compile, one that is answered, and the end."""
    name, text = next(iter(regions.items()))
    broken = {name: fresh(f"@ {text}")}
    second = "benchmark_code" if number % 2 else "compiler_analysis"
    calls = [("benchmark_code", broken), (second, {name: fresh(text)})]
    said: list[Message | str] = [
        Message("assistant", "", (ToolCall(f"t{at}", tool, {"code": code}),)) for at, (tool, code) in enumerate(calls)
    ]
    return [*said, json.dumps({"final_code": "original", "explanation": "", "compile_args": []})]


class Spans:
    """When each job held the device, as the worker tells it."""

    def __init__(self) -> None:
        self.open: dict[str, float] = {}
        self.closed: list[tuple[float, float]] = []

    def stage(self, job: str, stage: Stage) -> None:
        now = time.monotonic()
        if job in self.open:
            self.closed.append((self.open.pop(job), now))
        if stage == "running":
            self.open[job] = now

    def overlapping(self) -> int:
        spans = sorted(self.closed)
        return sum(after[0] < before[1] for before, after in itertools.pairwise(spans))

    def held_s(self) -> float:
        return sum(end - start for start, end in self.closed)


@asynccontextmanager
async def a_pool() -> Any:
    async with LocalPool(open_sandbox()) as pool:
        pool.spans = Spans()
        plain = pool.board.stage

        def stage(job: str, stage: Stage) -> None:
            pool.spans.stage(job, stage)
            plain(job, stage)

        pool.board.stage = stage
        yield pool


async def rollouts(task: Task, count: int, at_once: int) -> dict[str, Any]:
    async with a_pool() as pool:
        archive = await pool.add(task)
        told = Brief.from_json((await pool.run(JobSpec("brief", {}, archive))).result).briefing
        regions = {name: region.text for name, region in told.regions.items()}
        room = asyncio.Semaphore(at_once)
        calls: list[Message] = []

        async def one(number: int) -> None:
            async with room:
                tools = PooledTools(pool, archive, told.language, regions, f"r{number}", number)
                policy = Scripted(script(number, regions))
                trace = await rollout(told, policy, tools, RolloutLimits(), seed=number)
                calls.extend(message for message in trace.messages if message.role == "tool")

        # The workshops that the rollouts need are opened before the clock starts, in both arms.
        await asyncio.gather(*(warm(pool, archive, told.language, regions, n) for n in range(min(at_once, 24))))
        pool.spans = Spans()
        started = time.monotonic()
        await asyncio.gather(*(one(number) for number in range(count)))
        wall_s = time.monotonic() - started
        outcomes = [message.data.get("outcome", "analysed") for message in calls]
        return {
            "rollouts": count,
            "at_once": at_once,
            "wall_s": wall_s,
            "calls": len(calls),
            "outcomes": {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))},
            "device_held_s": pool.spans.held_s(),
            "holds": len(pool.spans.closed),
            "overlapping_holds": pool.spans.overlapping(),
            "speedups": [m.data["speedup"] for m in calls if m.data.get("speedup")],
            "jobs": {key: value for key, value in pool.board.snapshot().items() if key != "folder"},
        }


async def warm(pool: LocalPool, archive: str, language: str, regions: dict[str, str], number: int) -> None:
    tools = PooledTools(pool, archive, language, regions, f"warm{number}", number)
    await tools.call(ToolCall("w", "search", {"pattern": "kernel"}), "")


async def noise(task: Task, blocks: int, pairs: int) -> dict[str, Any]:
    """Log ratios of the unchanged program to itself, alone and beside builds, in alternating blocks."""
    ratios: dict[str, list[float]] = {"quiet": [], "builds": []}
    wall: dict[str, list[float]] = {"quiet": [], "builds": []}
    built = 0
    budget = Budget("advise", Schedule((pairs,), None))
    async with a_pool() as pool, Workshop(task, open_sandbox()) as shop:
        baseline = await open_baseline(shop, task.shown, lambda _: None)
        archive = await pool.add(task)
        regions = {name: span.text for name, span in shop.spans.items()}

        async def builder(number: int, stop: asyncio.Event) -> None:
            nonlocal built
            tools = PooledTools(pool, archive, task.language, regions, f"b{number}", number)
            name, text = next(iter(regions.items()))
            while not stop.is_set():
                await tools.call(ToolCall("b", "compiler_analysis", {"code": {name: fresh(text)}}), "")
                built += 1

        builders = max(2, len(available_cores()) - 1)
        await asyncio.gather(*(warm(pool, archive, task.language, regions, n) for n in range(builders)))
        for block in range(2 * blocks):
            kind = ("quiet", "builds")[block % 2 ^ (block // 2) % 2]
            stop = asyncio.Event()
            others = [asyncio.create_task(builder(n, stop)) for n in range(builders if kind == "builds" else 0)]
            await asyncio.sleep(2.0 if others else 0.2)  # until compilers run on every core
            measured = await compare(
                baseline, baseline.built, task.shown[0], budget, rng=random.Random(), time_budget_s=None,
                progress=lambda _: None,
            )  # fmt: skip
            stop.set()
            await asyncio.gather(*others)
            ratios[kind] += [ratio(pair, "time_s") for pair in measured.pairs]
            wall[kind] += [ratio(pair, "wall_s") for pair in measured.pairs]
    said = {kind: {"log_ratios": ratios[kind], "wall_log_ratios": wall[kind]} for kind in ratios}
    return {"blocks": blocks, "pairs": pairs, "builders": builders, "built": built, **said}


def ratio(pair: Pair, what: str) -> float:
    return math.log(getattr(pair.base, what) / getattr(pair.candidate, what))


def deviation(values: list[float]) -> float:
    """Robust: 1.4826 × the median distance from the median."""
    middle = statistics.median(values)
    return 1.4826 * statistics.median(abs(value - middle) for value in values)


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row["part"] in ("overlap", "alone"):
            yield (
                f"{row['part']}: {row['rollouts']} rollouts, {row['calls']} calls {row['outcomes']} in "
                f"{row['wall_s']:.1f} s; the device held {row['device_held_s']:.1f} s in {row['holds']} turns, "
                f"{row['overlapping_holds']} of them at once"
            )
        else:
            for kind in ("quiet", "builds"):
                times, walls = row[kind]["log_ratios"], row[kind]["wall_log_ratios"]
                yield (
                    f"noise, {kind}: {len(times)} pairs, deviation of a pair's ratio {deviation(times):.2%} (time), "
                    f"{deviation(walls):.2%} (process); median ratio {math.exp(statistics.median(times)):.4f}"
                )
    times = {row["part"]: row["wall_s"] for row in rows if "wall_s" in row}
    if {"overlap", "alone"} <= set(times):
        yield f"overlap is {times['alone'] / times['overlap']:.2f} times as fast"


def main() -> int:
    parser = argparse.ArgumentParser(description="Rollouts with overlap and without, and the noise beside builds.")
    parser.add_argument("task", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rollouts", type=int, default=64)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--part", choices=PARTS, action="append")
    given = parser.parse_args()
    task = load_task(given.task)
    for part in given.part or PARTS:
        if part == "noise":
            made = asyncio.run(noise(task, given.blocks, given.pairs))
        else:
            made = asyncio.run(rollouts(task, given.rollouts, given.rollouts if part == "overlap" else 1))
        with given.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"part": part, **made}) + "\n")
        print(part, "done", file=sys.stderr, flush=True)
    rows = [json.loads(line) for line in given.file.read_text(encoding="utf-8").splitlines()]
    print("\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
