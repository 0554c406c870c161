"""What of this machine's toolchain works, line by line, and what to install where it does not.

A compiler works when a tiny program goes through it, not when its name is on PATH. The sandbox has its own finding. A
thing that most tasks do without (a GPU, a profiler) is still reported, with what its absence costs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kernelwright.errors import InfrastructureError
from kernelwright.toolchain import Finding, devices, kernel_time, peaks
from kernelwright.toolchain.cuda import packaged_disassemblers

_TIMEOUT_S = 90.0
_CPP = '#include <cstdio>\nint main() { std::puts("works"); }\n'
_OPENMP = """#include <cstdio>
int main() { int n = 0;
#pragma omp parallel for reduction(+ : n) num_threads(2)
for (int i = 0; i < 100; ++i) n += i;
std::puts(n == 4950 ? "works" : "wrong sum"); }
"""
_KERNEL = "__global__ void twice(float* x) { x[threadIdx.x] *= 2; }\nint main() { twice<<<1, 32>>>(nullptr); }\n"
_HIP = "#include <hip/hip_runtime.h>\n" + _KERNEL
_DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")


def findings() -> list[Finding]:
    """Compilers, build tools, disassemblers, profilers, kernel times and GPUs of this machine. Takes some seconds."""
    return [
        _compiler("g++", _CPP, "x.cpp", [], "apt-get install g++"),
        _compiler("clang++", _CPP, "x.cpp", [], "apt-get install clang; only for tasks that build with clang"),
        _compiler("g++", _OPENMP, "x.cpp", ["-fopenmp"], "apt-get install g++ libgomp1", name="OpenMP", run=True),
        _nvcc(),
        _hipcc(),
        *_tools(),
        _nvdisasm(),
        _kernel_times(),
        _ncu(),
        _perf(),
        *_gpus(),
        *_peaks(),
    ]


def _run(argv: Sequence[str], cwd: str | None = None) -> tuple[int | None, str]:
    """Exit code (None: it cannot be started, or takes too long) and what it printed; hipcc is told not to call nvcc."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, cwd=cwd,
                              env={**os.environ, "HIP_PLATFORM": "amd"})  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, f"no answer within {_TIMEOUT_S:.0f} s"
    except OSError as error:
        return None, str(error)
    return done.returncode, done.stdout + done.stderr


def _version(tool: str) -> str:
    """The line of a tool's version text that holds a version number."""
    _, text = _run([tool, "--version"])
    lines = [line.strip() for line in text.splitlines() if re.search(r"\d+\.\d+", line)]
    return next((line for line in lines if "release" in line.lower()), lines[0] if lines else "version unknown")


def _compiler(tool: str, program: str, file: str, arguments: Sequence[str], advice: str, name: str | None = None,
              run: bool = False) -> Finding:  # fmt: skip
    """Whether a tiny program goes through a compiler (and, with `run`, prints `works`)."""
    if shutil.which(tool) is None:
        return Finding(name or tool, False, f"{tool} is not installed", advice)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, file).write_text(program)
        code, text = _run([tool, *arguments, file, "-o", "x"], cwd=folder)
        if code == 0 and run:
            code, text = _run([f"{folder}/x"])
            code = code if text.strip() == "works" else 1
    if code != 0:
        reason = next((line for line in text.splitlines() if "error" in line or "fatal" in line), text.strip()[-300:])
        return Finding(name or tool, False, f"a tiny program does not go through {tool}: {reason.strip()}", advice)
    return Finding(name or tool, True, _version(tool) + (f", {' '.join(arguments)}" if arguments else ""))


def _nvcc() -> Finding:
    arch = devices.default_arch("cuda")
    return _compiler("nvcc", _KERNEL, "x.cu", [f"-arch={arch}"],
                     "the CUDA toolkit: apt-get install nvidia-cuda-toolkit (Debian non-free), or cuda-toolkit from "
                     "NVIDIA's repository; only for CUDA tasks")  # fmt: skip


def _hipcc() -> Finding:
    arch = devices.default_arch("hip")
    found = _compiler("hipcc", _HIP, "x.hip", [f"--offload-arch={arch}", "-c"],
                      "apt-get install hipcc; only for HIP tasks")  # fmt: skip
    if found.works and not devices.visible_gpus("amd"):
        return replace(found, detail=f"{found.detail}; no AMD GPU here: HIP tasks are compiled and looked at, not run")
    return found


def _tools() -> list[Finding]:
    found = []
    for tool, advice in (
        ("make", "apt-get install make"),
        ("cmake", "apt-get install cmake; only for tasks that build with CMake"),
        ("git", "apt-get install git"),
        ("c++filt", "apt-get install binutils; without it, kernels in reports have mangled names"),
        ("valgrind", "apt-get install valgrind libc6-dbg; without it, candidates' memory is looked at less closely"),
        ("compute-sanitizer", "part of the CUDA toolkit; without it, CUDA candidates' memory is not looked at"),
    ):
        path = shutil.which(tool)
        found.append(Finding(tool, True, _version(tool)) if path else Finding(tool, False, "not installed", advice))
    return found


def _nvdisasm() -> Finding:
    """SASS in reports needs it; cuobjdump, its companion, calls it too."""
    path = shutil.which("nvdisasm") or next((f"{folder}/nvdisasm" for folder in packaged_disassemblers()), None)
    if path is None:
        return Finding("nvdisasm", False, "not installed: reports on CUDA kernels show PTX instead of SASS",
                       "the CUDA toolkit's package cuda-nvdisasm, or pip install nvidia-cuda-nvdisasm")  # fmt: skip
    both = "with" if shutil.which("cuobjdump") or Path(path).with_name("cuobjdump").exists() else "without"
    return Finding("nvdisasm", True, f"{_version(path)}, {both} cuobjdump")


def _kernel_times() -> Finding:
    try:
        cupti = kernel_time.find_cupti()
        kernel_time.injection_library()
    except InfrastructureError as error:
        return Finding("CUPTI", False, error.what, error.try_)
    return Finding("CUPTI", True, f"{cupti.library}: times of single kernels, without counter rights")


def _ncu() -> Finding:
    if shutil.which("ncu") is None:
        return Finding("ncu", False, "not installed; nothing here needs it", "apt-get install nsight-compute")
    admin_only = counters_admin_only()
    if admin_only is None:
        return Finding("ncu", False, f"{_version('ncu')}; no NVIDIA driver is loaded", "an NVIDIA GPU and its driver")
    if admin_only:
        return Finding("ncu", False, f"{_version('ncu')}; GPU counters are for root alone; nothing here needs them",
                       "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d; reboot")  # fmt: skip
    return Finding("ncu", True, f"{_version('ncu')}, GPU counters permitted")


def counters_admin_only() -> bool | None:
    """Whether the driver keeps GPU counters to root; None where no NVIDIA driver is loaded."""
    try:
        match = re.search(r"RmProfilingAdminOnly: (\d)", _DRIVER_PARAMETERS.read_text())
    except OSError:
        return None
    return match is None or match[1] != "0"


def _peaks() -> list[Finding]:
    """What was measured of this machine's devices; that nothing was yet is no fault."""
    found = []
    for language, name in (("cpp", "CPU's limits"), ("cuda", "GPU's limits")):
        try:
            measured = peaks.known(peaks.target(language))
        except peaks.NotMeasured as reason:
            if language == "cpp":
                found.append(
                    Finding(name, False, f"not measured: {reason}", "a compiler; tasks with [floor] use datasheets")
                )
            continue
        said = measured.summary if measured else "not measured yet: done when a task with [floor] needs it"
        found.append(Finding(name, True, said, "" if measured else "kernelwright doctor --measure, to do it now"))
    return found


def _perf() -> Finding:
    if shutil.which("perf") is None:
        return Finding("perf", False, "not installed; only `init --hot` needs it", "apt-get install linux-perf")
    code, text = _run(["perf", "stat", "-e", "task-clock", "true"])
    if code != 0:
        return Finding("perf", False, f"cannot measure: {text.strip().splitlines()[0] if text.strip() else 'no reason'}",
                       "sysctl kernel.perf_event_paranoid=1; only `init --hot` needs it")  # fmt: skip
    code, text = _run(["perf", "stat", "-e", "cycles", "true"])
    counters = code == 0 and "not supported" not in text
    return Finding("perf", True, _version("perf") + ("" if counters else ", without hardware counters"))


def _gpus() -> list[Finding]:
    found = devices.gpus()
    if not found:
        reason = "nvidia-smi lists none" if shutil.which("nvidia-smi") else "neither nvidia-smi nor rocm-smi finds one"
        return [Finding("GPU", False, f"no GPU: {reason}", "a GPU and its driver; only for CUDA and HIP tasks")]
    return [_gpu(gpu) for gpu in found]


def _gpu(gpu: devices.Gpu) -> Finding:
    busy = devices.gpu_is_busy(gpu.index, gpu.vendor)
    memory = f", {gpu.memory_total_bytes / 2**30:.0f} GiB" if gpu.memory_total_bytes else ""
    state = {True: ", in use by another process now", False: ", idle", None: ""}[busy]
    return Finding(f"GPU {gpu.index}", True, f"{gpu.name} ({gpu.arch or 'architecture unknown'}{memory}){state}",
                   "wait until it is idle: times taken beside other work are noise" if busy else "")  # fmt: skip
