from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.toolchain import devices, doctor


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which only the programs that a test writes into this folder exist."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


TWO_GPUS = """\
case "$*" in
*compute-apps*) echo 4242;;
*) echo '0, GPU-aa11, NVIDIA H200, 9.0, 143771, 4, 0'; echo '1, GPU-bb22, NVIDIA L4, 8.9, 23034, [N/A], [Not Supported]';;
esac"""


def test_a_machine_without_a_gpu_has_none_and_compiles_for_the_default(machine: Path) -> None:
    assert devices.gpus() == []
    assert devices.default_arch("cuda") == "sm_90"
    assert devices.default_arch("hip") == "gfx90a"
    assert devices.default_arch("cpp") == "native"
    assert devices.gpu_is_busy() is None


def test_a_driver_that_fails_counts_as_no_gpu(machine: Path) -> None:
    program(machine, "nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")
    assert devices.gpus() == []


def test_garbage_from_the_vendors_tool_is_passed_over(machine: Path) -> None:
    program(machine, "nvidia-smi", "echo 'what, is, this'; echo; echo '0, GPU-1, Odd, 9.0, x, y, z'")
    (gpu,) = devices.gpus()
    assert (gpu.arch, gpu.memory_total_bytes, gpu.utilisation_percent) == ("sm_90", None, None)


def test_gpus_are_listed_with_what_is_known_of_each(machine: Path) -> None:
    program(machine, "nvidia-smi", TWO_GPUS)
    first, second = devices.gpus()
    assert (first.name, first.arch, first.memory_total_bytes) == ("NVIDIA H200", "sm_90", 143771 * 2**20)
    assert (second.arch, second.memory_used_bytes, second.utilisation_percent) == ("sm_89", None, None)


def test_the_architecture_is_that_of_the_first_visible_gpu(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(machine, "nvidia-smi", TWO_GPUS)
    assert devices.default_arch("cuda") == "sm_90"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert devices.default_arch("cuda") == "sm_89"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-bb")
    assert devices.default_arch("cuda") == "sm_89"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert devices.visible_gpus("nvidia") == []


def test_a_gpu_with_a_foreign_process_is_busy(machine: Path) -> None:
    program(machine, "nvidia-smi", TWO_GPUS)
    assert devices.gpu_is_busy(0) is True
    program(machine, "nvidia-smi", 'case "$*" in *apps*) ;; *) echo "0, GPU-1, H200, 9.0, 1, 1, 0";; esac')
    assert devices.gpu_is_busy(0) is False


def test_amd_cards_are_read_from_rocm_smi(machine: Path) -> None:
    program(
        machine,
        "rocm-smi",
        """echo '{"card0": {"Card series": "AMD Instinct MI250X", "GFX Version": "gfx90a",
        "VRAM Total Memory (B)": "68702699520", "GPU use (%)": "3"}, "system": {}}'""",
    )
    (gpu,) = devices.gpus()
    assert (gpu.vendor, gpu.arch, gpu.memory_total_bytes, gpu.utilisation_percent) == ("amd", "gfx90a", 68702699520, 3)
    assert devices.default_arch("hip") == "gfx90a"


def test_the_number_of_an_architecture_is_what_makefiles_call_it() -> None:
    assert devices.arch_number("sm_90") == "90"
    assert devices.arch_number("sm_90a") == "90a"
    assert devices.arch_number("gfx90a") == "90a"
    assert devices.arch_number("native") == "native"


def test_the_doctor_names_every_thing_and_says_what_to_do_where_it_does_not_work() -> None:
    found = {finding.name: finding for finding in doctor.findings()}
    assert {"g++", "clang++", "nvcc", "hipcc", "make", "cmake", "git", "OpenMP", "CUPTI", "ncu", "perf"} <= set(found)
    assert found["g++"].works
    assert "." in found["g++"].detail
    assert all(finding.advice for finding in found.values() if not finding.works)


def test_the_doctor_does_not_trust_a_compiler_that_cannot_compile(machine: Path) -> None:
    program(machine, "g++", "echo 'x.cpp:1: error: no headers here'; exit 1")
    finding = next(finding for finding in doctor.findings() if finding.name == "g++")
    assert not finding.works
    assert "no headers here" in finding.detail
    assert "apt-get install g++" in finding.advice
