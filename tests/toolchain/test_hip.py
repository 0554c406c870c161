from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelwright.analysis import analysing
from kernelwright.execute import BuildFailure, Workshop
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.suites.make import AnyBuild
from kernelwright.task import Task
from kernelwright.task_file import load_task
from kernelwright.toolchain import CompileCommand, Exec, Report, hip
from kernelwright.toolchain.device_code import mix_amdgcn, parse_amdgcn
from kernelwright.trace import Candidate

SOURCE = """\
#include <hip/hip_runtime.h>
__global__ void add(float* y, const float* x, int n) {
    __shared__ float tile[64];
    tile[threadIdx.x & 63] = x[0];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] += 2.0 * x[i] + tile[i & 63];
}
"""


def test_amd_assembly_is_read_with_its_loops() -> None:
    text = """\
_Z3addPf:                               ; @_Z3addPf
	s_load_dwordx2 s[0:1], s[4:5], 0x0
.LBB0_1:                                ; =>This Inner Loop Header: Depth=1
	global_load_dwordx4 v[2:5], v0, s[0:1]
	v_fma_f32 v1, v2, v3, v4
	ds_read_b64 v[2:3], v4
	s_cbranch_scc1 .LBB0_1
	s_endpgm
	.section	.rodata
	.amdhsa_kernel _Z3addPf
	.end_amdhsa_kernel
; NumSgprs: 17
; NumVgprs: 6
; ScratchSize: 416
; LDSByteSize: 256 bytes/workgroup (compile time only)
; Occupancy: 8
"""
    function = parse_amdgcn(text)["_Z3addPf"]
    assert [(loop.first, loop.last) for loop in function.loops()] == [(1, 4)]
    assert mix_amdgcn(function.instructions) == {
        "total": 6, "load_scalar_8B": 1, "load_global_16B": 1, "fma": 1, "fp32": 1, "load_shared_8B": 1, "branch": 1,
    }  # fmt: skip
    assert hip.parse_resources(text) == {"_Z3addPf": hip.Resources(6, 17, 416, 256, 8)}


def require_hipcc(source: Path) -> None:
    trial = ["env", "HIP_PLATFORM=amd", "hipcc", "--offload-arch=gfx90a", "-fsyntax-only", str(source)]
    if shutil.which("hipcc") is None or subprocess.run(trial, capture_output=True).returncode != 0:
        pytest.skip("no working hipcc for AMD on this machine")


def test_a_hip_kernel_is_reported_where_hipcc_works(tmp_path: Path, exec_here: Exec) -> None:
    (tmp_path / "work.hip").write_text(SOURCE)
    require_hipcc(tmp_path / "work.hip")
    command = CompileCommand(
        ("hipcc", "-O3", "--offload-arch=gfx906", "-c", "work.hip", "-o", "work.o"),
        str(tmp_path),
        ("work.hip",),
        "work.o",
    )
    report = asyncio.run(hip.report(command, "work.hip", (2, 7), ["add"], exec_here, "gfx90a"))
    (kernel,) = report.data["kernels"]
    assert kernel["name"].startswith("add(")
    assert kernel["resources"]["lds_bytes"] == 256
    assert any("float to double" in note for note in kernel["notes"])
    assert "An innermost loop" in report.text


MAKEFILE = """\
CC = hipcc
CFLAGS := $(EXTRA_CFLAGS) -std=c++17 -O2
main: main.cu
\t$(CC) $(CFLAGS) main.cu -o $@
run: main
\t./main
"""
MAIN = """
#include <cstdio>
int main() {
    float *y = nullptr, *x = nullptr, gpu_time = 1;
    add<<<1, 64>>>(y, x, 0);
    printf("kernel time %f ms\\n", gpu_time);
    puts(hipDeviceSynchronize() == hipSuccess ? "PASS" : "FAIL");
}
"""


def test_a_hip_makefile_becomes_a_task_that_compiles_for_amd_and_is_looked_at(tmp_path: Path) -> None:
    repo, out = tmp_path / "repo", tmp_path / "tasks"
    repo.mkdir()
    (repo / "main.cu").write_text(SOURCE + MAIN)
    (repo / "Makefile").write_text(MAKEFILE)
    require_hipcc(repo / "main.cu")
    (made,) = asyncio.run(AnyBuild(repo).make("main.cu", out, None, print)).tasks
    task = load_task(out / made.file)
    assert task.language == "hip"
    assert task.build.command == "make -B -j{jobs} 'EXTRA_CFLAGS=--offload-arch={arch} {flags}'"
    report, placed = asyncio.run(looked_at(task))
    (kernel,) = report.data["kernels"]
    assert report.data["arch"].startswith("gfx")
    assert kernel["resources"]["lds_bytes"] == 256
    assert placed == ["-O2", "-O3", "-munsafe-fp-atomics"]


async def looked_at(task: Task) -> tuple[Report, list[str]]:
    """The compiler's report on the region, and the -O and -m arguments of a candidate's own build of it."""
    async with Workshop(task, open_sandbox()) as shop:
        await shop.build_baseline()
        span = shop.spans["add"]
        async with analysing(shop, Candidate()) as (commands, exec_, _):
            report = await hip.report(
                commands[0], span.file, (span.first_line, span.last_line), ["add"], exec_, shop.arch
            )
        built = await shop.build(Candidate(compile_args=("-O3", "-munsafe-fp-atomics")))
        assert not isinstance(built, BuildFailure), built.log
        return report, [word for word in built.commands[0].argv if word.startswith(("-O", "-m"))]
