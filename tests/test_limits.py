"""Nothing is faster than the device; what is honest never comes near enough to be doubted."""

from __future__ import annotations

import asyncio
import json
import math
import random
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app import FASTER, FILES, make_app
from kernelwright import limits
from kernelwright.candidates import read_candidate
from kernelwright.errors import TaskError
from kernelwright.execute import Workshop
from kernelwright.measure import EVALUATE
from kernelwright.outcome import Outcome, Verdict
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.state import state_home
from kernelwright.task import Floor, Task
from kernelwright.task_file import load_task
from kernelwright.toolchain import peaks
from kernelwright.toolchain.peaks import Peaks
from kernelwright.trace import Candidate
from kernelwright.trial import open_baseline
from kernelwright.verify import Verifier

EXAMPLES = Path(__file__).parent.parent / "examples"
RATES = ((2**14, 4e11), (2**20, 2e11), (2**25, 1e11), (2**28, 1e10))


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """What a test puts in place of a measurement is gone after it."""
    yield
    shutil.rmtree(state_home() / "peaks", ignore_errors=True)


def pretend(rates: Sequence[tuple[int, float]], flops_per_s: float) -> None:
    """As if this had been measured of this machine."""
    found = Peaks(peaks.target("cpp"), "2026-11-30T12:00:00+00:00", tuple(rates), flops_per_s)
    file = state_home() / "peaks" / f"{found.target.digest}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(found.to_json()))


def with_floor(task: Task, **floor: float) -> Task:
    return task.model_copy(update={"floor": Floor(**floor)})


def least_s(task: Task, **floor: float) -> float:
    limit = limits.fastest_possible(with_floor(task, **floor), "native")
    assert limit is not None
    return limit.least_s


def test_without_a_floor_there_is_no_limit(app: Path) -> None:
    pretend(RATES, 1e12)
    assert limits.fastest_possible(load_task(app), "native") is None


def test_bytes_may_come_from_the_fastest_cache_and_distinct_ones_only_from_what_holds_them(app: Path) -> None:
    pretend(RATES, 1e12)
    task, room = load_task(app), limits.HEAD_ROOM["cpp"]
    assert least_s(task, bytes=4e11) == pytest.approx(1 / room)
    assert least_s(task, distinct_bytes=2**13) == pytest.approx(2**13 / 4e11 / room)
    assert least_s(task, distinct_bytes=2**21) == pytest.approx(2**21 / 2e11 / room)
    assert least_s(task, distinct_bytes=2**30) == pytest.approx(2**30 / 1e10 / room)
    assert least_s(task, distinct_bytes=2**40) == pytest.approx(2**40 / 1e10 / room)
    assert least_s(task, bytes=4e11, distinct_bytes=2**21) == pytest.approx(1 / room)


def test_operations_have_a_limit_of_their_own(app: Path) -> None:
    pretend(RATES, 1e12)
    assert 0 < least_s(load_task(app), flops=1e12) < 0.5


def test_what_cannot_be_measured_has_the_limit_of_datasheets_and_a_note_says_so(
    app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, sandbox = with_floor(load_task(app), bytes=4e12), open_sandbox()
    peaks.target.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    try:
        note = asyncio.run(limits.learn(task, "native", 2.0, sandbox, nobody_else))
        assert note == "the physical limit is that of datasheets, 4 times their bandwidth: g++ is not installed"
        limit = limits.fastest_possible(task, "native")
    finally:
        peaks.target.cache_clear()
    assert limit is not None
    assert (limit.least_s, "by datasheets" in limit.basis) == (1.0, True)


def test_a_gpu_without_a_measurement_has_its_datasheet(app: Path) -> None:
    task = with_floor(load_task(app).model_copy(update={"language": "hip"}), bytes=3.2e12, flops=1.0)
    limit = limits.fastest_possible(task, "gfx90a")
    assert limit is not None
    assert limit.least_s == 0.25
    assert limits.fastest_possible(task, "gfx1") is None


@asynccontextmanager
async def nobody_else() -> AsyncIterator[None]:
    yield


def test_the_device_is_measured_again_before_a_time_is_called_too_fast(app: Path) -> None:
    """A measurement made beside a busy neighbour must not condemn anybody."""
    task = with_floor(load_task(app), bytes=1e6)
    pretend([(2**14, 1e6), (2**28, 1e6)], 1e6)
    before = limits.fastest_possible(task, "native")
    assert before is not None
    assert before.least_s == pytest.approx(0.5)
    assert asyncio.run(limits.learn(task, "native", 0.01, open_sandbox(), nobody_else)) is None
    after = limits.fastest_possible(task, "native")
    assert after is not None
    assert after.least_s < 0.01


def test_a_time_that_is_long_enough_is_no_reason_to_measure(app: Path) -> None:
    task = with_floor(load_task(app), bytes=1e6)
    pretend(RATES, 1e12)
    assert asyncio.run(limits.learn(task, "native", 1.0, open_sandbox(), nobody_else)) is None
    known = peaks.known(peaks.target("cpp"))
    assert known is not None
    assert known.bytes_per_s == RATES


# --- verdicts ---------------------------------------------------------------------------------------------------------

SCALE = """\
inline void scale(const double* in, double* out, long n) {
  for (long i = 0; i < n; ++i) out[i] = 3.0 * in[i] + 1.0;
}
"""
VECTORS = """\
inline void scale(const double* __restrict__ in, double* __restrict__ out, long n) {
#pragma omp parallel for simd
  for (long i = 0; i < n; ++i) out[i] = 3.0 * in[i] + 1.0;
}
"""
STREAMED = """\
#include <immintrin.h>
inline void scale(const double* in, double* out, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; i += 2)
    _mm_stream_pd(out + i, _mm_add_pd(_mm_mul_pd(_mm_set1_pd(3.0), _mm_loadu_pd(in + i)), _mm_set1_pd(1.0)));
}
"""
SKIPS = SCALE.replace("++i", "i += 4096")
"""Computes only what anybody looks at."""
N = 2**22
MAIN = f"""\
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "smooth.hpp"
int main() {{
  const long n = {N};
  double* in = static_cast<double*>(aligned_alloc(64, n * 8));
  double* out = static_cast<double*>(aligned_alloc(64, n * 8));
  for (long i = 0; i < n; ++i) {{ in[i] = i % 1013; out[i] = 0.0; }}
  auto start = std::chrono::steady_clock::now();
  scale(in, out, n);
  double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  FILE* file = fopen("field.txt", "w");
  double sum = 0.0;
  for (long i = 0; i < n; i += 4096) {{ sum += out[i]; fprintf(file, "%.15e\\n", out[i]); }}
  fclose(file);
  printf("smooth: %.6f ms\\nsum %.12e\\nPASS\\n", ms, sum);
}}
"""


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """An application that reads and writes 64 MiB once, and looks at a small part of the result."""
    makefile = FILES["Makefile"].replace("CXX = g++", "CXX = g++ -fopenmp")
    folder = make_app(
        tmp_path / "stream", src_main_cpp=MAIN, src_smooth_hpp="#pragma once\n" + SCALE, Makefile=makefile
    )
    file = folder / "kernelwright.toml"
    text = file.read_text().replace('"smooth"\nfile', '"scale"\nfile').replace('kernel = "smooth"', 'kernel = "scale"')
    file.write_text(text.replace("[verify]", f"[floor]\nbytes = {16 * N}\ndistinct_bytes = {16 * N}\n[verify]"))
    return folder


def verdicts(task: Task, *candidates: Candidate) -> list[Verdict]:
    async def inside() -> list[Verdict]:
        async with Workshop(task, open_sandbox()) as shop:
            baseline = await open_baseline(shop, (*task.shown, *task.held_out), lambda _: None)
            verifier = Verifier(baseline, random.Random(1), lambda _: None)
            return [await verifier(candidate, EVALUATE, 120.0) for candidate in candidates]

    return asyncio.run(inside())


def test_a_floor_that_the_original_itself_breaks_is_the_user_s_mistake(app: Path) -> None:
    pretend([(2**14, 1e13)], 1e12)
    with pytest.raises(TaskError, match=r"lie below the 50 s that \[floor\] allows here \(1e\+15 bytes at 1e\+04 GB/s"):
        verdicts(with_floor(load_task(app), bytes=1e15))


def test_a_time_below_the_floor_is_suspect(app: Path) -> None:
    """The floor lies midway between the original's time and the candidate's, which is about a seventh of it."""
    pretend([(2**14, 1e13)], 1e12)
    task, candidate = load_task(app), Candidate({"smooth": FASTER})
    (free,) = verdicts(task, candidate)
    between_s = math.sqrt(free.samples["small"]["base_s"] * free.samples["small"]["candidate_s"])
    (verdict,) = verdicts(with_floor(task, bytes=between_s * limits.HEAD_ROOM["cpp"] * 1e13), candidate)
    assert (verdict.outcome, verdict.speedup) == (Outcome.SUSPECT, None)
    assert "the least that the task's floor allows" in verdict.reason


def test_skipped_work_is_suspect_and_the_best_honest_code_is_not(stream: Path) -> None:
    *honest, skips = verdicts(
        load_task(stream),
        # Without arguments: -O3 makes the loop that fills the arrays, which is not timed, 4 ms slower on some processors.
        Candidate({"scale": VECTORS}),
        Candidate({"scale": STREAMED}),
        Candidate({"scale": SKIPS}),
    )
    assert [verdict.outcome for verdict in honest] == [Outcome.CORRECT] * 2, [verdict.reason for verdict in honest]
    assert skips.outcome is Outcome.SUSPECT
    assert "the least that the task's floor allows on this device (6.71e+07 bytes at" in skips.reason


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "floor"),
    [
        # 50 steps on 500 × 500 points, each with three fields of doubles and at least 20 operations a point.
        ("heat", {"bytes": 50 * 3 * 2e6, "distinct_bytes": 3 * 2e6, "flops": 50 * 20 * 2.5e5}),
        # A million doubles are read and a million written; a product and a sum for each of 15 weights.
        ("smooth", {"bytes": 1.6e7, "distinct_bytes": 1.6e7, "flops": 3e7}),
    ],
)
def test_the_better_candidates_of_the_examples_are_never_too_fast(name: str, floor: dict[str, float]) -> None:
    task = with_floor(load_task(EXAMPLES / name), **floor)
    (verdict,) = verdicts(task, read_candidate(task, EXAMPLES / name / "candidates" / "better.json"))
    assert verdict.outcome is Outcome.CORRECT, verdict.reason
    limit = limits.fastest_possible(task, "native")
    assert limit is not None
    assert verdict.samples[task.shown[0].name]["candidate_s"] > 2 * limit.least_s
