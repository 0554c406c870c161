from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import InfrastructureError
from kernelwright.toolchain import kernel_time, microbench

ENTRY = {"name": "f(int)", "symbol": "_Z1fi", "launches": 3, "total_ns": 60, "min_ns": 10, "p10_ns": 10, "median_ns": 20,
         "p90_ns": 30, "max_ns": 30}  # fmt: skip

CUPTI_THAT_DELIVERS = r"""
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cstring>
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
extern "C" {
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc a, CUpti_BuffersCallbackCompleteFunc b) {
    request = a, complete = b;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) { return CUPTI_SUCCESS; }
CUptiResult cuptiEnableCallback(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId) {
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
    *dropped = 0;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t bytes, CUpti_Activity** record) {
    auto* next = *record ? (CUpti_ActivityKernel10*)*record + 1 : (CUpti_ActivityKernel10*)buffer;
    if ((uint8_t*)(next + 1) > buffer + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity*)next;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(uint32_t) {
    for (int times = 0; times < 30; ++times) {
        uint8_t* buffer;
        size_t size, records;
        request(&buffer, &size, &records);
        std::memset(buffer, 0, size);
        auto* kernel = (CUpti_ActivityKernel10*)buffer;
        for (int i = 0; i < 10000; ++i) {
            kernel[i].kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
            kernel[i].start = 1000;
            kernel[i].end = 2000 + i % 101;
            kernel[i].name = i % 2 ? "_ZN2ns4axpyIfEEviT_PKS1_PS1_" : "odd\"name";
        }
        complete(nullptr, 0, buffer, size, 10000 * sizeof(*kernel));
    }
    return CUPTI_SUCCESS;
}
int InitializeInjection();
}
int main() { return InitializeInjection() - 1; }
"""


def cupti() -> kernel_time.Cupti:
    try:
        return kernel_time.find_cupti()
    except InfrastructureError as error:
        pytest.skip(error.what)


def written(*entries: dict[str, Any]) -> bytes:
    return json.dumps({"schema": 1, "dropped": 0, "kernels": list(entries)}).encode()


def test_kernels_come_back_in_seconds_and_longest_first() -> None:
    longer = {**ENTRY, "name": "g()", "total_ns": 6000}
    first, second = kernel_time.read(written(ENTRY, longer))
    assert (first.name, second.name) == ("g()", "f(int)")
    assert second.launches == 3
    assert second.median_s == pytest.approx(20e-9)
    assert second.total_s == pytest.approx(60e-9)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe", b"null", b"[1, 2]", b"[" * 100_000, b'{"kernels": 7}', b'{"kernels": [null, 3, "x", []]}',
     b'{"kernels": [{"name": "f"'],
)  # fmt: skip
def test_a_file_of_garbage_holds_no_kernels(data: bytes) -> None:
    assert kernel_time.read(data) == []


@pytest.mark.parametrize(
    "lie",
    [{"launches": 0}, {"launches": True}, {"launches": "3"}, {"min_ns": -1}, {"total_ns": 1e400}, {"median_ns": None},
     {"min_ns": 25}, {"total_ns": 5}, {"name": ""}, {"name": 7}, {"p90_ns": float("nan")}],
)  # fmt: skip
def test_an_entry_that_makes_no_sense_is_left_out(lie: dict[str, Any]) -> None:
    (only,) = kernel_time.read(written({**ENTRY, **lie}, ENTRY))
    assert only.name == "f(int)"


def test_the_library_is_built_once_and_offers_what_the_driver_calls() -> None:
    cupti()
    library = kernel_time.injection_library()
    assert library == kernel_time.injection_library()
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True
    ).stdout
    assert [line.split()[-1] for line in symbols.splitlines() if " T " in line] == ["InitializeInjection"]
    assert kernel_time.environment("/kw/l.so", "/kw/times") == {
        "CUDA_INJECTION64_PATH": "/kw/l.so", "KERNELWRIGHT_KERNEL_TIMES": "/kw/times",
    }  # fmt: skip


def test_records_are_gathered_by_kernel_and_written_whole_at_exit(tmp_path: Path) -> None:
    folders = [f"-I{folder}" for folder in cupti().include]
    (tmp_path / "cupti.cpp").write_text(CUPTI_THAT_DELIVERS)
    source = Path(kernel_time.__file__).with_name("kernel_time.cpp")
    build = [
        "g++",
        "-std=c++17",
        "-O1",
        *folders,
        str(tmp_path / "cupti.cpp"),
        str(source),
        "-o",
        str(tmp_path / "program"),
    ]
    if subprocess.run(build, capture_output=True).returncode != 0:
        pytest.skip("CUPTI before CUDA 13: the record of this test is not in it")
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run([str(tmp_path / "program")], env=kernel_time.environment("", str(out / "times")), check=True)
    assert [path.name for path in out.iterdir()] == ["times"]
    kernels = {time.name: time for time in kernel_time.read((out / "times").read_bytes())}
    assert set(kernels) == {"void ns::axpy<float>(int, float, float const*, float*)", 'odd"name'}
    one = kernels['odd"name']
    assert one.launches == 150_000
    assert (one.min_s, one.max_s) == (pytest.approx(1000e-9), pytest.approx(1100e-9))
    assert one.median_s == pytest.approx(1050e-9, abs=2e-9)


def test_where_cupti_is_missing_the_reason_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_time, "_toolkits", lambda: iter([tmp_path]))
    with pytest.raises(InfrastructureError, match=r"cupti\.h"):
        kernel_time.injection_library()
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cupti.h").touch()
    with pytest.raises(InfrastructureError, match=r"libcupti\.so"):
        kernel_time.injection_library()


def example(language: str) -> str:
    return "\n".join(line[2:] for line in microbench.usage(language).splitlines() if line.startswith("  "))


def test_the_example_shown_to_models_runs_and_its_times_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.cpp").write_text(example("cpp"))
    subprocess.run(["g++", "-O2", "-Wall", "-Werror", f"-I{microbench.header_folder()}", "x.cpp", "-o", "x"], cwd=tmp_path,
                   check=True)  # fmt: skip
    done = subprocess.run([str(tmp_path / "x")], capture_output=True, text=True, check=True)
    times = microbench.parse("the program's own words\n" + done.stdout)
    assert [time.name for time in times] == ["copy", "scale"]
    assert all(0 < time.min_s <= time.median_s and time.samples >= 15 and time.bandwidth for time in times)
    assert "the speed of 'copy'" in microbench.table(times)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")
def test_the_cuda_example_compiles_and_a_failing_variant_names_its_error(tmp_path: Path) -> None:
    (tmp_path / "x.cu").write_text(example("cuda"))
    subprocess.run(
        ["nvcc", "-arch=sm_90", f"-I{microbench.header_folder()}", "x.cu", "-o", "x"], cwd=tmp_path, check=True
    )
    done = subprocess.run([str(tmp_path / "x")], capture_output=True, text=True, env={"CUDA_VISIBLE_DEVICES": ""})
    assert microbench.parse(done.stdout) == []
    assert set(microbench.failures(done.stdout)) == {"block 128", "block 256"}


def test_lines_that_are_no_times_are_passed_over() -> None:
    good = '{"kernelwright_variant": "a", "median_ns": 2000, "min_ns": 1, "mad_ns": 0, "n": 9, "bytes": 4000}'
    bad = ['{"kernelwright_variant": "b"}', '{"kernelwright_variant": "c", "median_ns": -1}', '{"kernelwright_variant": 7',
           good.replace("2000", "1e999"), good.replace("9,", "true,")]  # fmt: skip
    (only,) = microbench.parse("\n".join([*bad, good]))
    assert (only.name, only.median_s, only.bandwidth) == ("a", pytest.approx(2e-6), pytest.approx(2e9))
