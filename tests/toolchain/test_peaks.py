"""What a device does at its best is measured here, kept by what it depends on, and only ever gets better."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.sandbox.backends import open_sandbox
from kernelwright.state import state_home
from kernelwright.toolchain import peaks
from kernelwright.toolchain.peaks import NotMeasured, Peaks


@pytest.fixture(scope="module")
def measured() -> Peaks:
    return asyncio.run(peaks.measure(peaks.target("cpp"), open_sandbox()))


@pytest.fixture
def fresh() -> Iterator[None]:
    """What the target is, is asked anew before and after."""
    peaks.target.cache_clear()
    yield
    peaks.target.cache_clear()


def test_caches_are_faster_than_memory_and_operations_are_counted(measured: Peaks) -> None:
    sizes = [size for size, _ in measured.bytes_per_s]
    assert sizes == sorted(sizes)
    assert sizes[-1] == peaks.CPU_LARGEST
    fastest, memory = max(rate for _, rate in measured.bytes_per_s), measured.bytes_per_s[-1][1]
    assert 1e8 < memory < fastest
    assert measured.flops_per_s is not None
    assert measured.flops_per_s > 1e8


def test_a_measurement_is_kept_and_says_when_it_was_made(measured: Peaks) -> None:
    assert peaks.known(measured.target) == measured
    assert "GB/s from the fastest cache" in measured.summary
    old = replace(measured, measured_at="2020-01-01T00:00:00+00:00")
    assert old.summary.endswith("days ago")


def test_another_driver_compiler_or_number_of_cores_is_another_device(measured: Peaks) -> None:
    for other in ({"driver": "580.1"}, {"compiler": "g++ 99"}, {"cores": 3}, {"device": "another"}):
        assert peaks.known(replace(measured.target, **other)) is None


def test_what_was_once_reached_is_not_forgotten(measured: Peaks) -> None:
    slower = replace(
        measured, bytes_per_s=tuple((size, rate / 2) for size, rate in measured.bytes_per_s), flops_per_s=1.0
    )
    assert slower.best_of(measured) == measured
    assert measured.best_of(slower) == measured


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"bytes_per_s": 3}', '{"bytes_per_s": [[1]], "flops_per_s": null}'])
def test_a_file_that_holds_something_else_counts_for_nothing(measured: Peaks, text: str) -> None:
    other = replace(measured.target, device="made up")
    file = state_home() / "peaks" / f"{other.digest}.json"
    file.write_text(text)
    assert peaks.known(other) is None
    file.write_text(json.dumps(measured.to_json()))
    assert peaks.known(other) == replace(measured, target=other)


@pytest.mark.usefixtures("fresh")
def test_without_a_compiler_nothing_is_measured_and_the_reason_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotMeasured, match=r"g\+\+ is not installed"):
        peaks.target("cpp")
    with pytest.raises(NotMeasured, match="nvcc is not installed"):
        peaks.target("cuda")
    with pytest.raises(NotMeasured, match="no measuring program for hip"):
        peaks.target("hip")


@pytest.mark.gpu
def test_a_gpu_moves_more_from_its_caches_than_from_its_memory() -> None:
    found = asyncio.run(peaks.measure(peaks.target("cuda"), open_sandbox()))
    by_size = dict(found.bytes_per_s)
    own, l2, memory = found.bytes_per_s[0][1], by_size[2**23], by_size[peaks.GPU_LARGEST]
    assert 1e11 < memory < l2 < own
    assert found.flops_per_s is None
