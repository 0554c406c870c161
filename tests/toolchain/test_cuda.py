from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelwright.toolchain import CompileCommand, Exec, Report, cuda
from kernelwright.toolchain.device_code import mix_ptx, mix_sass, parse_ptx, parse_sass
from kernelwright.toolchain.kernel_time import nvcc_toolkit
from kernelwright.toolchain.occupancy import BLOCK_SIZES, LIMITS, capability, occupancy

SOURCE = """\
namespace ns {
template <typename T> __global__ void axpy(int n, T a, const T* x, T* y) {
    __shared__ T tile[64];
    tile[threadIdx.x & 63] = x[0];
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] / y[i] + 2.0 * tile[i & 63];
}
}
__global__ void scatter(float* o, const float4* __restrict__ in, int n) {
    float t[100];
    float4 v = in[threadIdx.x];
    for (int i = 0; i < n; ++i) t[i % 100] = v.x + v.y * i + v.z + v.w;
    atomicAdd(o, t[n % 100]);
}
int main() { ns::axpy<float><<<1, 64>>>(1, 2.f, nullptr, nullptr); }
"""
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")


@pytest.fixture(scope="session")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repo")
    (folder / "work.cu").write_text(SOURCE)
    return folder


def analyse(repo: Path, exec_: Exec, names: tuple[str, ...], *, flags: tuple[str, ...] = (), arch: str = "sm_90",
            file: str = "work.cu", budget: int = 6000) -> Report:  # fmt: skip
    command = CompileCommand(
        ("nvcc", "-O3", "-gencode", "arch=compute_80,code=sm_80", *flags, "-c", file, "-o", "work.o"),
        str(repo), (file,), "work.o",
    )  # fmt: skip
    return asyncio.run(cuda.report(command, file, (1, 9), names, exec_, arch, budget))


@pytest.fixture(scope="session")
def both(repo: Path, exec_here: Exec) -> Report:
    return analyse(repo, exec_here, ())


def kernel(report: Report, start: str) -> dict[str, object]:
    return next(one for one in report.data["kernels"] if start in one["name"])


@needs_nvcc
def test_resources_and_occupancy_of_each_kernel_are_given(both: Report) -> None:
    axpy = kernel(both, "void ns::axpy<float>(int, float, float const*, float*)")
    assert axpy["resources"]["shared_bytes"] == 256
    assert axpy["resources"]["registers"] > 8
    assert [row["block"] for row in axpy["occupancy"]] == list(BLOCK_SIZES)
    assert kernel(both, "scatter")["resources"]["stack_bytes"] == 400


@needs_nvcc
def test_what_stands_out_is_noted(both: Report) -> None:
    axpy, scatter = "\n".join(kernel(both, "axpy")["notes"]), "\n".join(kernel(both, "scatter")["notes"])
    assert "double-precision" in axpy
    assert "__restrict__" in axpy
    assert "4 bytes per thread" in axpy
    assert "division" in axpy
    assert "local memory" in scatter
    assert "atomic" in scatter
    assert "double" not in scatter
    assert "__restrict__" not in scatter


@needs_nvcc
def test_the_mix_counts_loads_by_width_and_path(both: Report) -> None:
    assert kernel(both, "scatter")["instructions"]["ptx"]["load_global_nc_16B"] == 1
    axpy = kernel(both, "axpy")["instructions"]["ptx"]
    assert axpy["load_global_4B"] == 3
    assert axpy["barrier"] == 1
    assert axpy["fp_div"] == 1


@needs_nvcc
def test_only_the_kernels_asked_for_are_shown(repo: Path, exec_here: Exec) -> None:
    report = analyse(repo, exec_here, ("axpy",), arch="sm_80")
    assert [one["symbol"] for one in report.data["kernels"]] == ["_ZN2ns4axpyIfEEviT_PKS1_PS1_"]
    assert "scatter" not in report.text
    assert ("SASS of an innermost loop" in report.text) == report.data["sass_available"]
    assert (cuda.NO_SASS in report.text) != report.data["sass_available"]
    assert "bra $L" in report.text or "BRA" in report.text


@needs_nvcc
def test_separate_compilation_and_a_small_budget_work(repo: Path, exec_here: Exec) -> None:
    command = CompileCommand(("nvcc", "-arch=native", "-dc", "work.cu", "-o", "w.o"), str(repo), ("work.cu",), "w.o")
    report = asyncio.run(cuda.report(command, "work.cu", (10, 15), ["scatter"], exec_here, "sm_90", 1500))
    assert len(report.text) < 1800
    assert "[cut:" in report.text
    assert sorted(path.name for path in repo.iterdir()) == ["work.cu"]


@needs_nvcc
def test_a_kernel_that_is_not_there_is_answered_with_those_that_are(repo: Path, exec_here: Exec) -> None:
    report = analyse(repo, exec_here, ("nothing",))
    assert report.data["kernels"] == []
    assert "scatter" in report.text


@needs_nvcc
def test_code_that_does_not_compile_is_a_report_with_the_compilers_words(tmp_path: Path, exec_here: Exec) -> None:
    (tmp_path / "work.cu").write_text("__global__ void f() { undeclared(); }\n")
    report = analyse(tmp_path, exec_here, ("f",))
    assert "undeclared" in report.text
    assert "error" in report.data


def test_sass_is_read_with_its_loops() -> None:
    text = """\
.text._Z4copyPfPKf:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0020*/                   FFMA R0, R4, R5, R6 ;
        /*0030*/                   HFMA2.MMA R3, -RZ, RZ, 0, 1 ;
        /*0040*/                   DADD R8, R8, R10 ;
        /*0050*/                   MUFU.RCP R0, R0 ;
        /*0060*/                   STG.E.64 desc[UR4][R2.64], R4 ;
        /*0070*/               @P0 BRA `(.L_x_1) ;
        /*0080*/                   EXIT ;
.L_x_2:
        /*0090*/                   BRA `(.L_x_2);
        /*00a0*/                   NOP;
"""
    function = parse_sass(text)["_Z4copyPfPKf"]
    assert [(loop.first, loop.last, loop.innermost) for loop in function.loops()] == [(1, 7, True)]
    assert mix_sass(function.instructions) == {
        "total": 10, "load_global_nc_16B": 1, "fp32": 1, "fma": 1, "fp64": 1, "special": 1, "store_global_8B": 1,
        "branch": 2,
    }  # fmt: skip


def test_ptx_is_read_by_entry_and_without_declarations() -> None:
    text = """\
.func helper() { ret; }
.visible .entry _Z1fPf(
	.param .u64 p
)
{
	.reg .b32 	%r<2>;
	ld.param.u64 	%rd1, [p];
$L__BB0_1:
	ld.global.nc.v4.f32 	{%f1, %f2, %f3, %f4}, [%rd1];
	{ // callseq 0, 0
	call.uni helper, ();
	}
	div.rn.f64 	%fd1, %fd2, %fd3;
	@%p1 bra 	$L__BB0_1;
	ret;
}
"""
    function = parse_ptx(text)["_Z1fPf"]
    assert len(function.instructions) == 6
    assert function.loops()[0].first == 1
    assert mix_ptx(function.instructions) == {
        "total": 6, "load_global_nc_16B": 1, "call": 1, "fp64": 1, "fp_div": 1, "branch": 1,
    }  # fmt: skip


def test_occupancy_names_what_limits_it() -> None:
    assert occupancy("sm_90", 32, 0, 256).share == 1.0
    heavy = occupancy("sm_90", 255, 0, 256)
    assert (heavy.warps, heavy.limited_by) == (8, "registers")
    assert occupancy("sm_80", 32, 48 * 1024, 128).limited_by == "shared memory"
    assert occupancy("sm_75", 16, 0, 32).limited_by == "blocks"
    assert occupancy("sm_90", 128, 0, 1024).blocks_per_sm == 0


def test_an_architecture_that_is_not_in_the_table_has_no_occupancy() -> None:
    assert occupancy("sm_35", 32, 0, 256) is None
    assert capability("sm_90a") == "9.0"
    assert capability("gfx90a") is None


VENDOR = r"""
#include <cstdio>
#include <initializer_list>
#include <cuda_occupancy.h>
int main() {
    int major, minor, threads, shared_kib;
    while (std::scanf("%d.%d %d %d", &major, &minor, &threads, &shared_kib) == 4)
        for (int registers : {16, 32, 40, 56, 72, 100, 128, 168, 255})
            for (int shared : {0, 256, 1280, 5000, 16384, 40000, 49152})
                for (int block : {64, 128, 192, 256, 384, 512, 768, 1024}) {
                    cudaOccDeviceProp device;
                    device.computeMajor = major, device.computeMinor = minor;
                    device.maxThreadsPerBlock = 1024, device.maxThreadsPerMultiprocessor = threads;
                    device.regsPerBlock = device.regsPerMultiprocessor = 65536, device.warpSize = 32, device.numSms = 1;
                    device.sharedMemPerBlock = 49152, device.sharedMemPerMultiprocessor = shared_kib * 1024;
                    device.reservedSharedMemPerBlock = major >= 8 ? 1024 : 0;
                    device.sharedMemPerBlockOptin = shared_kib * 1024 - device.reservedSharedMemPerBlock;
                    cudaOccFuncAttributes function;
                    function.maxThreadsPerBlock = 1024, function.numRegs = registers, function.sharedSizeBytes = shared;
                    function.shmemLimitConfig = FUNC_SHMEM_LIMIT_DEFAULT;
                    cudaOccDeviceState state;
                    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
                    cudaOccResult result;
                    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, block, 0) == 0)
                        std::printf("%d%d %d %d %d %d\n", major, minor, registers, shared, block,
                                    result.activeBlocksPerMultiprocessor);
                }
}
"""


def test_occupancy_agrees_with_the_toolkits_own_calculator(tmp_path: Path) -> None:
    toolkit = nvcc_toolkit()
    folders = toolkit.glob("**/include/cuda_occupancy.h") if toolkit else iter(())
    header = next(folders, None)
    if header is None or shutil.which("g++") is None:
        pytest.skip("no cuda_occupancy.h on this machine")
    (tmp_path / "vendor.cpp").write_text(VENDOR)
    program = tmp_path / "vendor"
    subprocess.run(
        ["g++", "-std=c++17", f"-I{header.parent}", str(tmp_path / "vendor.cpp"), "-o", str(program)], check=True
    )
    asked = "\n".join(
        f"{key} {one.warps * 32} {one.shared_bytes // 1024}" for key, one in LIMITS.items() if key != "11.0"
    )
    answer = subprocess.run([str(program)], input=asked, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in answer.splitlines()]
    assert len(rows) > 4000
    for capability_number, *numbers in rows:
        registers, shared, block, blocks = map(int, numbers)
        ours = occupancy(f"sm_{capability_number}", registers, shared, block)
        assert ours.blocks_per_sm == blocks, (capability_number, registers, shared, block)
