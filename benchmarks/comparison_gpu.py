"""Pairs of real runs on a GPU, by the package's own protocol and sandbox, recorded to be replayed (comparison_replay.py).

    python benchmarks/comparison_gpu.py FILE.jsonl [--pairs-aa 600] [--pairs-effect 150] [--minutes 9] [--device cpu]

Compiles a small program and runs it against an identical copy of itself (aa), or against the copy with 3 % less work
(effect): fresh processes, a coin for the order of each pair, the device held. One line a pair, in blocks of both kinds;
called again with the same file it goes on. Three times are kept of each run: the kernels' by the device's own events, the
application's by its clock around copies and launches, and the whole process's. Replaying costs no device time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from kernelwright.conditions import snapshot
from kernelwright.measure import Budget, Measurement, Pair, Sample, Sampler, compare
from kernelwright.sandbox import Bind, Job, Sandbox
from kernelwright.sandbox.backends import BACKENDS, open_sandbox
from kernelwright.slots import available_cores, slot
from kernelwright.stats import Schedule
from kernelwright.toolchain import devices

KINDS = ("aa", "effect")
BLOCKS = 10
"""Recording changes between the kinds this often, so that whenever it ends there is some of both."""
INSIDE = "/bench"
PRINTED = re.compile(rb"kernel: (\S+) ms\napplication: (\S+) ms")
PROGRAM = r"""
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int LAUNCHES = 20;
using Clock = std::chrono::steady_clock;
static double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

#ifdef __CUDACC__
constexpr int N = 1 << 20;
__global__ void mix(const float *in, float *out, int rounds) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    for (int round = 0; round < rounds; ++round) x = fmaf(x, 0.9990234375f, 0.0009765625f);
    out[i] = x;
}

static double run(std::vector<float> &values, int rounds, float &kernel_ms) {
    float *in, *out;
    cudaEvent_t begin, end;
    cudaMalloc(&in, N * sizeof(float));
    cudaMalloc(&out, N * sizeof(float));
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    mix<<<N / 256, 256>>>(out, out, 1);
    cudaDeviceSynchronize();
    const auto start = Clock::now();
    cudaMemcpy(in, values.data(), N * sizeof(float), cudaMemcpyHostToDevice);
    cudaEventRecord(begin);
    for (int launch = 0; launch < LAUNCHES; ++launch) mix<<<N / 256, 256>>>(in, out, rounds);
    cudaEventRecord(end);
    cudaMemcpy(values.data(), out, N * sizeof(float), cudaMemcpyDeviceToHost);
    const double application_ms = ms_since(start);
    if (cudaEventElapsedTime(&kernel_ms, begin, end) != cudaSuccess) std::exit(1);
    return application_ms;
}
#else
constexpr int N = 1 << 10;
static void mix(const float *in, float *out, int rounds) {
    for (int i = 0; i < N; ++i) out[i] = in[i];
    for (int round = 0; round < rounds; ++round)
        for (int i = 0; i < N; ++i) out[i] = out[i] * 0.9990234375f + 0.0009765625f;
}

static double run(std::vector<float> &values, int rounds, float &kernel_ms) {
    const auto start = Clock::now();
    std::vector<float> in(values), out(N);
    const auto begin = Clock::now();
    for (int launch = 0; launch < LAUNCHES; ++launch) mix(in.data(), out.data(), rounds);
    kernel_ms = float(ms_since(begin));
    values = out;
    return ms_since(start);
}
#endif

int main(int, char **argv) {
    std::vector<float> values(N, 0.5f);
    float kernel_ms = 0;
    const double application_ms = run(values, std::atoi(argv[1]), kernel_ms);
    std::printf("value %.9g\nkernel: %.6f ms\napplication: %.6f ms\n", values[N / 2], kernel_ms, application_ms);
}
"""


@dataclass(frozen=True)
class Machine:
    """Where the program runs, and what stays the same for all pairs of a file (`rounds`: the original's work)."""

    sandbox: Sandbox
    folder: Path
    gpu: int | None
    """None: on the cores."""

    @property
    def held(self) -> AbstractAsyncContextManager[None]:
        if self.gpu is None:
            return slot("cpu", available_cores(), on_wait=print)
        return slot("gpu", (self.gpu,), on_wait=print)

    def sampler(self, name: str, rounds: int) -> Sampler:
        job = Job((f"{INSIDE}/{name}", str(rounds)), INSIDE, (Bind(self.folder, INSIDE),), gpu=self.gpu is not None)

        async def sample() -> Sample:
            result = await self.sandbox.run(job)
            printed = PRINTED.search(result.stdout)
            if result.exit_code != 0 or printed is None:
                raise SystemExit(f"the program failed: {result}")
            more = {"application_s": float(printed[2]) / 1e3, "outside_s": result.outside_s}
            return Sample(float(printed[1]) / 1e3, result.wall_s, result.cpu_s, more)

        return sample


def build(folder: Path, device: str) -> str:
    """The program and its copy, under names of one length (a path's length moves the stack). Returns the compiler's words."""
    source = folder / ("program.cu" if device == "cuda" else "program.cpp")
    source.write_text(PROGRAM)
    words = ["nvcc", f"-arch={devices.default_arch('cuda')}"] if device == "cuda" else ["g++"]
    subprocess.run([*words, "-O2", "-o", str(folder / "one"), str(source)], check=True)
    shutil.copyfile(folder / "one", folder / "two")
    for path in (folder, folder / "one", folder / "two"):
        path.chmod(0o755)
    return " ".join([*words, "-O2"])


async def calibrated(machine: Machine, run_ms: float) -> int:
    """The number of rounds whose kernels take `run_ms` here, by the median of a few runs."""
    rounds = 2000
    for _ in range(3):
        times = [(await machine.sampler("one", rounds)()).time_s for _ in range(3)]
        rounds = max(1, round(rounds * run_ms / 1e3 / statistics.median(times)))
    return rounds


async def new_session(machine: Machine, command: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The first line of a file: what all its pairs share."""
    device = (await snapshot(machine.gpu)).device
    rounds = await calibrated(machine, arguments.run_ms)
    return {
        "device": device.fields["name"] if device else "CPU",
        "driver": device.fields["driver_version"] if device else None,
        "compiler": command,
        "sandbox": machine.sandbox.name,
        "effect": arguments.effect,
        "rounds": {"aa": [rounds, rounds], "effect": [rounds, round(rounds / (1 + arguments.effect))]},
    }


def pair_line(kind: str, index: int, pair: Pair) -> dict[str, Any]:
    def times(sample: Sample) -> dict[str, float]:
        return {"kernel_s": sample.time_s, **sample.extra, "process_s": sample.wall_s, "cpu_s": sample.cpu_s}

    return {
        "kind": kind,
        "index": index,
        "candidate_first": pair.candidate_first,
        "base": times(pair.base),
        "candidate": times(pair.candidate),
    }


def blocks(done: dict[str, int], asked: dict[str, int]) -> Iterator[tuple[str, int]]:
    """(kind, pairs) until all that was asked for is there; the kinds in turn."""
    left = {kind: max(0, asked[kind] - done[kind]) for kind in KINDS}
    while any(left.values()):
        for kind in KINDS:
            size = min(left[kind], math.ceil(asked[kind] / BLOCKS))
            left[kind] -= size
            if size:
                yield kind, size


async def block(
    machine: Machine, session: dict[str, Any], kind: str, first: int, size: int, left_s: float, out: TextIO
) -> Measurement:
    """One block of pairs, written as they come, and then what the machine did meanwhile."""
    base, candidate = (
        machine.sampler(name, rounds) for name, rounds in zip(("one", "two"), session["rounds"][kind], strict=True)
    )
    found = await compare(
        base,
        candidate,
        Budget("record", Schedule((size,), None)),
        min_effect=0.01,
        rng=random.SystemRandom(),
        time_budget_s=left_s,
        on_pair=lambda pair, count: print(json.dumps(pair_line(kind, first + count - 1, pair)), file=out),
        gpu=machine.gpu,
    )
    about = {"block": kind, "elapsed_s": found.elapsed_s, "conditions": found.conditions.to_json()}
    print(json.dumps(about), file=out)
    return found


async def record(arguments: argparse.Namespace, folder: Path) -> None:
    command = build(folder, arguments.device)
    visible = devices.visible_gpus("nvidia") if arguments.device == "cuda" else []
    if arguments.device == "cuda" and not visible:
        raise SystemExit("nvidia-smi lists no GPU; --device cpu rehearses without one")
    machine = Machine(open_sandbox(arguments.sandbox), folder, visible[0].index if visible else None)
    earlier = [json.loads(text) for text in arguments.file.read_text().splitlines()] if arguments.file.exists() else []
    done = {kind: sum(line.get("kind") == kind for line in earlier) for kind in KINDS}
    asked, spent = {"aa": arguments.pairs_aa, "effect": arguments.pairs_effect}, dict.fromkeys(KINDS, 0.0)
    with arguments.file.open("a", buffering=1) as out:
        async with machine.held:
            started = time.monotonic()
            session = earlier[0]["session"] if earlier else await new_session(machine, command, arguments)
            if not earlier:
                print(json.dumps({"session": session}), file=out)
            for kind, size in list(blocks(done, asked)):
                left_s = arguments.minutes * 60 - (time.monotonic() - started)
                if left_s <= 0:
                    break
                found = await block(machine, session, kind, done[kind], size, left_s, out)
                done[kind] += len(found.pairs)
                spent[kind] += found.elapsed_s
                print(
                    f"{kind:6} {done[kind]:4} of {asked[kind]} pairs, {spent[kind]:4.0f} s for this kind; kernels of a run "
                    f"{found.base_s * 1e3:.3f} ms, a pair {found.elapsed_s / (len(found.pairs) + 1):.3f} s",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="JSON lines; appended to")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--pairs-aa", type=int, default=600, help="those in FILE included")
    parser.add_argument("--pairs-effect", type=int, default=150, help="those in FILE included")
    parser.add_argument("--minutes", type=float, default=9.0, help="begin no pair that would end after so many")
    parser.add_argument("--effect", type=float, default=0.03, help="how much more work the original does")
    parser.add_argument("--run-ms", type=float, default=20.0, help="kernel time of a run; settled by FILE's first line")
    parser.add_argument("--sandbox", choices=["auto", *BACKENDS], default="auto")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(record(arguments, Path(name)))


if __name__ == "__main__":
    main()
