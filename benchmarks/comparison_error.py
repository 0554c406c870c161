"""How often real comparisons of a program with itself end in "faster", and how often real gains are found.

    python benchmarks/comparison_error.py --out FILE.jsonl [--comparisons 1000] [--minutes M] [--effect 0.03]
    python benchmarks/comparison_error.py --out FILE.jsonl --summary

Compiles a small C++ program of about 20 ms and lets the package's own protocol compare it with an identical copy, in the
package's own sandbox, holding the machine's cores. With --effect, the candidate does that much less work: the truth is
known and the answers show the power. Every comparison is one line of FILE, written when it ends; called again with the
same file it goes on where it stopped. Wants a machine on which nothing else runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.measure import EVALUATE, PROVE, Budget, Measurement, Sample, Sampler, compare
from kernelwright.sandbox import Bind, Job, Sandbox
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.slots import available_cores, slot

BUDGETS = {budget.name: budget for budget in (PROVE, EVALUATE)}
INSIDE = "/bench"
TIME = re.compile(rb"time: (\S+) ms")
PROGRAM = r"""
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int, char **argv) {
    const long sweeps = std::atol(argv[1]);
    std::vector<double> now(4096, 0.0), next(4096, 0.0);
    now[2048] = 1.0;
    const auto start = std::chrono::steady_clock::now();
    for (long sweep = 0; sweep < sweeps; ++sweep) {
        for (std::size_t i = 1; i + 1 < now.size(); ++i) next[i] = 0.25 * now[i - 1] + 0.5 * now[i] + 0.25 * now[i + 1];
        now.swap(next);
    }
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    std::printf("sum %.12g\ntime: %.6f ms\n", now[2048], taken.count());
}
"""


@dataclass(frozen=True)
class Experiment:
    """What stays the same for all comparisons of one kind."""

    sandbox: str
    budget: str
    min_effect: float
    effect: float
    """How much more work the original does than the candidate, as asked for."""
    sweeps: int
    core: int | None

    @property
    def candidate_sweeps(self) -> int:
        return round(self.sweeps / (1 + self.effect))


def build(folder: Path) -> None:
    """The program and its copy, under names of one length: a path's length moves the stack."""
    (folder / "program.cpp").write_text(PROGRAM)
    subprocess.run(["g++", "-O2", "-o", folder / "one", folder / "program.cpp"], check=True)
    shutil.copyfile(folder / "one", folder / "two")
    for path in (folder, folder / "one", folder / "two"):
        path.chmod(0o755)


def sampler(sandbox: Sandbox, folder: Path, name: str, sweeps: int, core: int | None) -> Sampler:
    job = Job(
        argv=(f"{INSIDE}/{name}", str(sweeps)), cwd=INSIDE, binds=(Bind(folder, INSIDE),),
        cpus=() if core is None else (core,),
    )  # fmt: skip

    async def sample() -> Sample:
        result = await sandbox.run(job)
        printed = TIME.search(result.stdout)
        if result.exit_code != 0 or printed is None:
            raise SystemExit(f"the program failed: {result}")
        return Sample(float(printed[1]) / 1e3, result.wall_s, result.cpu_s)

    return sample


async def calibrated(sandbox: Sandbox, folder: Path, run_ms: float) -> int:
    """The number of sweeps that take `run_ms` here, by the quickest of a few runs."""
    trial = 20_000
    times = [(await sampler(sandbox, folder, "one", trial, None)()).time_s for _ in range(5)]
    return max(1, round(trial * run_ms / 1e3 / statistics.median(times)))


def line(experiment: Experiment, index: int, found: Measurement) -> dict[str, Any]:
    """A comparison's result, small: the raw samples of thousands of comparisons are not worth keeping."""
    whole = found.to_json()
    kept = ("comparison", "speedup", "interval", "stop", "base_s", "base_noise", "wall", "cpu", "elapsed_s", "warnings")
    return {**vars(experiment), "index": index, "pairs": len(found.pairs), **{key: whole[key] for key in kept}}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def same_kind(experiment: Experiment, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    known = vars(experiment)
    return [found for found in lines if all(found[key] == value for key, value in known.items())]


async def measure(arguments: argparse.Namespace, folder: Path) -> None:
    sandbox = open_sandbox(arguments.sandbox)
    earlier = read(arguments.out)
    sweeps = earlier[0]["sweeps"] if earlier else await calibrated(sandbox, folder, arguments.run_ms)
    experiment = Experiment(
        sandbox.name, arguments.budget, arguments.min_effect, arguments.effect, sweeps, arguments.core
    )
    base = sampler(sandbox, folder, "one", sweeps, arguments.core)
    candidate = sampler(sandbox, folder, "two", experiment.candidate_sweeps, arguments.core)
    done, started = len(same_kind(experiment, earlier)), time.monotonic()
    print(f"{sweeps} sweeps; {done} comparisons of this kind are there already", flush=True)
    with arguments.out.open("a", buffering=1) as out:
        for index in range(done, arguments.comparisons):
            if time.monotonic() - started > arguments.minutes * 60:
                break
            async with slot("cpu", available_cores(), on_wait=print):
                found = await one(experiment, index, base, candidate)
            out.write(json.dumps(line(experiment, index, found)) + "\n")
            if arguments.verbose:
                print(f"{index:5} {found.sentence}", flush=True)


async def one(experiment: Experiment, index: int, base: Sampler, candidate: Sampler) -> Measurement:
    budget: Budget = BUDGETS[experiment.budget]
    rng = random.Random(f"{experiment.effect} {index}")
    return await compare(base, candidate, budget, min_effect=experiment.min_effect, rng=rng)


def summary(path: Path) -> str:
    """One row per kind of comparison."""
    keys = ("sandbox", "budget", "min_effect", "effect", "sweeps", "core")
    kinds: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for found in read(path):
        kinds.setdefault(tuple(found[key] for key in keys), []).append(found)
    rows = [
        f"{'sandbox':10} {'budget':8} {'effect':>6} {'comparisons':>11} {'faster':>7} {'slower':>7} {'same':>7}"
        f" {'unresolved':>10} {'pairs':>6} {'time':>8} {'noise':>6} {'estimate':>8} {'minutes':>8}"
    ]
    for kind, lines in kinds.items():
        answers = Counter(found["comparison"] for found in lines)
        rows.append(
            f"{kind[0]:10} {kind[1]:8} {kind[3]:6.1%} {len(lines):11}"
            f" {answers['faster']:7} {answers['slower']:7} {answers['same']:7} {answers['unresolved']:10}"
            f" {statistics.fmean(found['pairs'] for found in lines):6.1f}"
            f" {statistics.median(found['base_s'] for found in lines) * 1e3:5.2f} ms"
            f" {statistics.median(found['base_noise'] for found in lines):6.2%}"
            f" {statistics.median(found['speedup'] for found in lines):8.4f}"
            f" {sum(found['elapsed_s'] for found in lines) / 60:8.1f}"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, one a comparison; appended to")
    parser.add_argument("--summary", action="store_true", help="only print what FILE holds")
    parser.add_argument("--comparisons", type=int, default=1000, help="of this kind, those in FILE included")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no comparison after so many")
    parser.add_argument("--effect", type=float, default=0.0, help="0.03: the candidate is truly 3 %% faster")
    parser.add_argument("--run-ms", type=float, default=20.0, help="time of one run; settled by FILE's first line")
    parser.add_argument("--min-effect", type=float, default=0.01)
    parser.add_argument("--budget", choices=BUDGETS, default=PROVE.name)
    parser.add_argument("--sandbox", choices=["bubblewrap", "none"], default="bubblewrap")
    parser.add_argument("--core", type=int, help="pin both programs to this core")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if not arguments.summary:
        with tempfile.TemporaryDirectory() as name:
            build(Path(name))
            asyncio.run(measure(arguments, Path(name)))
    print(summary(arguments.out))


if __name__ == "__main__":
    main()
