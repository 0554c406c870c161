"""Tolerances measured from the original's own variation, on real programs: another order of a sum is right, a lower
precision is not, whatever the original's own runs do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from app import make_app
from kernelwright.checks import compare_numbers
from kernelwright.errors import TaskError
from kernelwright.execute import Workshop
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.task_file import load_task
from kernelwright.tolerance import Variation
from kernelwright.trace import Candidate
from kernelwright.trial import Baseline, CandidateFailed, beyond_own_variation, build, open_baseline, try_runs

ORIGINAL = """\
inline void rows(const REAL* x, const REAL* w, REAL* out, int count, int n) {
  for (int row = 0; row < count; ++row, x += n) {
    REAL s = 0;
    for (int i = 0; i < n; ++i) s += x[i] * w[i];
    out[row] = s;
  }
}
"""
FOUR_SUMS = """\
inline void rows(const REAL* x, const REAL* w, REAL* out, int count, int n) {
  for (int row = 0; row < count; ++row, x += n) {
    REAL s[4] = {0, 0, 0, 0};
    for (int i = 0; i < n; ++i) s[i % 4] += x[i] * w[i];
    out[row] = (s[0] + s[1]) + (s[2] + s[3]);
  }
}
"""
BLOCKS = """\
inline void rows(const REAL* x, const REAL* w, REAL* out, int count, int n) {
  for (int row = 0; row < count; ++row, x += n) {
    REAL s = 0;
    for (int b = n; b > 0; b -= 64) {
      REAL t = 0;
      for (int i = b - 1; i >= (b > 64 ? b - 64 : 0); --i) t += x[i] * w[i];
      s += t;
    }
    out[row] = s;
  }
}
"""
NARROW_SUM = ORIGINAL.replace("REAL s = 0;", "float s = 0;").replace(
    "s += x[i] * w[i]", "s += float(x[i]) * float(w[i])"
)
HALF = """\
inline float half(float v) {
  unsigned u;
  __builtin_memcpy(&u, &v, 4);
  u = (u + 0x1000u) & 0xffffe000u;
  __builtin_memcpy(&v, &u, 4);
  return v;
}
""" + ORIGINAL.replace("x[i] * w[i]", "half(x[i]) * half(w[i])")
LEFT_OUT = ORIGINAL.replace("i < n", "i < n - 1")

MAIN = """\
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "rows.hpp"
int main(int argc, char** argv) {
  int n = atoi(argv[1]), count = 40;
  srand(1);
  std::vector<REAL> x(n * count), w(n), out(count);
  for (REAL& v : x) v = rand() / (RAND_MAX + 1.0) - 0.3;
  for (REAL& v : w) v = rand() / (RAND_MAX + 1.0);
  auto start = std::chrono::steady_clock::now();
  rows(x.data(), w.data(), out.data(), count, n);
  double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  printf("rows: %.6f ms\\n", ms + 0.001);
  double sum = 0;
  for (REAL v : out) sum += v;
  printf("count %d sum %.12e\\n", count, sum);
  FILE* file = fopen("out.bin", "wb");
  fwrite(out.data(), sizeof(REAL), count, file);
  fclose(file);
}
"""
MAKEFILE = "app: main.cpp rows.hpp\n\tg++ -std=c++17 -fopenmp -DREAL={real} $(EXTRA_CFLAGS) -o app main.cpp\n"
TASK = """\
schema = 1
name = "rows"
language = "cpp"
[[region]]
name = "rows"
file = "rows.hpp"
kernel = "rows"
[build]
command = "make EXTRA_CFLAGS={flags}"
artifact = "app"
flags = ["-O1"]
[[run]]
name = "small"
command = "./app 4000"
env = { OMP_NUM_THREADS = "3" }
outputs = ["out.bin"]
[time]
source = "regex"
pattern = 'rows: (\\S+) ms'
unit = "ms"
[[check]]
kind = "exit_code"
[[check]]
kind = "number"
pattern = 'sum (\\S+)'
rel = REL
[[check]]
kind = "number"
pattern = 'count (\\d+)'
rel = REL
[[check]]
kind = "file"
path = "out.bin"
dtype = "float64"
rel = REL
"""


def judged(
    folder: Path, original: str, candidates: Mapping[str, str], real: str = "double", rel: str = '"measured"'
) -> tuple[Baseline, dict[str, str]]:
    """The baseline of a small program, and for each candidate `right` or what is wrong, with what is said of its
    precision where the tolerance is a stated one."""
    task = TASK.replace("REL", rel).replace("float64", "float32" if real == "float" else "float64")
    app = make_app(folder / "repo", kernelwright_toml=task, Makefile=MAKEFILE.format(real=real))
    (app / "main.cpp").write_text(MAIN)
    (app / "rows.hpp").write_text(original)

    async def all_of_them() -> tuple[Baseline, dict[str, str]]:
        found = {}
        async with Workshop(load_task(app), open_sandbox()) as shop:
            baseline = await open_baseline(shop, shop.task.shown, lambda _: None)
            for name, code in candidates.items():
                try:
                    built = await build(baseline, Candidate({"rows": code}))
                    await try_runs(baseline, built, shop.task.shown, lambda _: None)
                    found[name] = "right"
                    if rel != '"measured"':
                        said = await beyond_own_variation(baseline, built, shop.task.shown[0], lambda _: None)
                        found[name] += f"; {said}" if said else ""
                except CandidateFailed as failure:
                    found[name] = failure.reason
        return baseline, found

    return asyncio.run(all_of_them())


def variations(baseline: Baseline) -> Mapping[int, Variation]:
    return baseline.variation.known(baseline.task.shown[0])


def test_another_order_of_a_double_sum_is_right_and_a_single_one_is_not(tmp_path: Path) -> None:
    candidates = {"four sums": FOUR_SUMS, "blocks": BLOCKS, "single": NARROW_SUM, "left out": LEFT_OUT}
    baseline, found = judged(tmp_path, ORIGINAL, candidates)
    assert [found["four sums"], found["blocks"]] == ["right", "right"]
    assert "than what the original's own variation allows (typically rel" in found["single"]
    assert "than what the original's own variation allows" in found["left out"]
    printed, count, file = (variations(baseline)[at] for at in (1, 2, 3))
    assert file.versions >= 3, "builds that re-associate and contract differ"
    assert 1e-13 < printed.relative < 1e-11
    assert 1e-13 < file.relative < 1e-11
    assert (list(count.allowed), count.relative) == ([0.0], 0.0)


def test_another_order_of_a_single_sum_is_right_and_half_precision_is_not(tmp_path: Path) -> None:
    candidates = {"four sums": FOUR_SUMS, "blocks": BLOCKS, "half": HALF, "left out": LEFT_OUT}
    baseline, found = judged(tmp_path, ORIGINAL, candidates, real="float")
    assert [found["four sums"], found["blocks"]] == ["right", "right"]
    assert "than what the original's own variation allows" in found["half"]
    assert "than what the original's own variation allows" in found["left out"]
    assert 1e-6 < variations(baseline)[3].relative < 1e-3


def test_an_original_that_never_varies_still_allows_another_order(tmp_path: Path) -> None:
    """Nothing that a compiler may do re-orders sums through a volatile variable."""
    fixed = ORIGINAL.replace("REAL s = 0;", "volatile REAL s = 0;").replace("s += x[i] * w[i]", "s = s + x[i] * w[i]")
    fixed = fixed.replace("x[i] * w[i]", "(x[i] * 1) * w[0]")
    names = {"four sums": FOUR_SUMS, "blocks": BLOCKS, "single": NARROW_SUM}
    candidates = {name: code.replace("w[i]", "w[0]") for name, code in names.items()}
    baseline, found = judged(tmp_path, fixed, candidates)
    assert [found["four sums"], found["blocks"]] == ["right", "right"]
    assert "than what the original's own variation allows" in found["single"]
    assert variations(baseline)[3].relative < 1e-11


def test_sums_whose_order_changes_from_run_to_run_set_the_tolerance(tmp_path: Path) -> None:
    """As with atomics: where each sum begins depends on the time."""
    begin = "long from = std::chrono::steady_clock::now().time_since_epoch().count() / 64 % n;"
    any_order = ORIGINAL.replace("REAL s = 0;", f"REAL s = 0;\n    {begin}")
    any_order = any_order.replace("s += x[i] * w[i]", "s += x[(from + i) % n] * w[(from + i) % n]")
    threads = ORIGINAL.replace("    for (int i", '    _Pragma("omp parallel for reduction(+:s)")\n    for (int i')
    candidates = {"itself": any_order, "threads": threads, "four sums": FOUR_SUMS, "single": NARROW_SUM}
    baseline, found = judged(tmp_path, any_order, candidates)
    assert [found[name] for name in ("itself", "threads", "four sums")] == ["right"] * 3
    assert "than what the original's own variation allows" in found["single"]
    assert variations(baseline)[3].versions >= 3


def test_within_a_wide_stated_tolerance_a_lower_precision_is_told(tmp_path: Path) -> None:
    candidates = {"four sums": FOUR_SUMS, "blocks": BLOCKS, "single": NARROW_SUM}
    baseline, found = judged(tmp_path, ORIGINAL, candidates, rel="1e-3")
    assert [found["four sums"], found["blocks"]] == ["right", "right"]
    assert "right; its numbers of the check" in found["single"]
    assert "times what its own runs and builds differ by: lower precision?" in found["single"]
    assert variations(baseline)[3].versions >= 3, "measured for the one that is far apart"


def test_numbers_that_do_not_repeat_tell_nothing(tmp_path: Path) -> None:
    noise = ORIGINAL.replace(
        "REAL s = 0;", "REAL s = std::chrono::steady_clock::now().time_since_epoch().count() % 9973;"
    )
    with pytest.raises(TaskError, match=r"tells nothing: .*typically rel"):
        judged(tmp_path, noise, {})


def test_the_largest_number_may_be_the_scale() -> None:
    assert compare_numbers([1000.0, 1e-4], [1000.0, 0.0], 1e-6, 0.0, scale="largest")[0]
    passed, said = compare_numbers([1000.0, 1e-2], [1000.0, 0.0], 1e-6, 0.0, scale="largest")
    assert not passed
    assert "more than rel 1e-06 of the largest" in said
    assert not compare_numbers([1000.0, 1e-4], [1000.0, 0.0], 1e-6, 0.0)[0]
