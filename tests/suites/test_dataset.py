"""Splits by benchmark, near-duplicates on one side, and a manifest that says where each task comes from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app import make_app
from command import kernelwright
from kernelwright.suites import Benchmark, Listing, Made, Origin
from kernelwright.suites.dataset import Row, rows, write
from kernelwright.suites.likeness import alike, families, windows
from kernelwright.task import Task
from kernelwright.task_file import load_task

STENCIL = """
__global__ void stencil(const float* __restrict__ in, float* out, int n, float w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 1 || i >= n - 1) return;   // the edges stay
  float sum = 0.5f * in[i];
  for (int k = 1; k < 4; ++k) {
    sum += w * (in[i - k] + in[i + k]) / (1.0f + k);
  }
  out[i] = sum > 0.0f ? sum : -sum;
}
"""
RENAMED = """
/* another author's */ __global__
void smooth_line(float const* src,
                 float* dst, int count, float weight)
{
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < 2 || idx >= count - 2) return;
  float acc = 0.25f * src[idx];
  for (int r = 1; r < 8; ++r) { acc += weight * (src[idx - r] + src[idx + r]) / (2.0f + r); }
  dst[idx] = acc > 0.0f ? acc : -acc;
}
"""
OTHER = """
__global__ void scale(float* x, const int* index, float factor, int n) {
  extern __shared__ float tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[index[i]] * factor;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) tile[threadIdx.x] += tile[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(&x[blockIdx.x], tile[0]);
}
"""


def test_a_renamed_and_reordered_copy_is_a_near_duplicate() -> None:
    assert windows(STENCIL) != windows(OTHER)
    assert alike(windows(STENCIL), windows(RENAMED))
    assert alike(windows(STENCIL), windows(STENCIL + OTHER))
    assert not alike(windows(STENCIL), windows(OTHER))


def test_near_duplicates_join_families_over_several_steps() -> None:
    found = families({
        "a": [windows(STENCIL)],
        "b": [windows(RENAMED), windows(OTHER)],
        "c": [windows(OTHER)],
        "d": [windows("void f(int* p) { while (*p) { if (p[0] > 3) { p += 2; } else { p++; } } }")],
    })  # fmt: skip
    assert found == {"a": "a", "b": "a", "c": "a", "d": "d"}


def imported(folder: Path, suite: str, benchmarks: dict[str, str]) -> Path:
    """A folder as an importer leaves it: a program for each benchmark with this text of its region."""
    made = []
    for name, text in benchmarks.items():
        app = make_app(folder / f"{name}-app")
        (app / "src/smooth.hpp").write_text("#pragma once\n" + text)
        task = (app / "kernelwright.toml").read_text().replace("language", f'repo = "{name}-app"\nlanguage', 1)
        (folder / f"{name}.toml").write_text(task.replace('kernel = "smooth"', "lines = [2, 8]"))
        (app / "kernelwright.toml").unlink()
        made.append(Benchmark(name, (Made(f"{name}.toml", ("smooth",)),)))
    Listing(Origin(suite, "cpp", "abc", "MIT"), tuple(made)).write(folder)
    return folder


def by_name(made: list[Row]) -> dict[str, Row]:
    return {row.benchmark: row for row in made}


@pytest.fixture
def suites(tmp_path: Path) -> tuple[Path, Path]:
    texts = {"copy": RENAMED, "lulesh": "void a(int* p)\n{\n  *p = 1;\n}\n\n\n\n", "sums": OTHER}
    first = imported(tmp_path / "one", "hecbench", texts)
    return first, imported(tmp_path / "two", "rajaperf", {"Apps_STENCIL": STENCIL})


def test_what_evaluation_is_published_on_and_its_copies_are_never_in_train(
    suites: tuple[Path, Path], tmp_path: Path
) -> None:
    made, left_out = rows(suites, {}, tmp_path)
    assert left_out == []
    found = by_name(made)
    assert {name: row.split for name, row in found.items() if name != "sums"} == dict.fromkeys(
        ("copy", "lulesh", "Apps_STENCIL"), "test"
    )
    assert found["copy"].like == "rajaperf/Apps_STENCIL"
    assert (found["copy"].licence, found["copy"].revision, found["copy"].suite) == ("MIT", "abc", "hecbench")
    alone = by_name(rows(suites[:1], {}, tmp_path)[0])
    assert alone["copy"].like is None


def test_a_user_may_hold_out_more(suites: tuple[Path, Path], tmp_path: Path) -> None:
    assert by_name(rows(suites[:1], {}, tmp_path)[0])["sums"].split == "train"
    assert by_name(rows(suites[:1], {}, tmp_path, ["sums"])[0])["sums"].split == "test"


def test_a_split_depends_on_the_name_alone(tmp_path: Path) -> None:
    text = "void f{0}(int* p)\n{{\n  for (int i = {0}; i < 9; ++i) p[i] += {0};\n}}\n\n\n\n"
    folder = imported(tmp_path / "many", "other", {f"n{number}": "\n" * 7 + text.format(number) for number in range(3)})
    listing = json.loads((folder / "suite.json").read_text())
    first = by_name(rows([folder], {}, tmp_path)[0])
    listing["benchmarks"] = listing["benchmarks"][::-1]
    (folder / "suite.json").write_text(json.dumps(listing))
    assert by_name(rows([folder], {}, tmp_path)[0]) == first


def test_the_manifest_is_json_lines_and_parquet(
    suites: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = tmp_path / "answers.jsonl"
    row = {"file": "copy.toml", "state": "refused", "reason": "it is blind", "group": "blind", "acceptance": None}
    answers.write_text(json.dumps({**row, "total_s": 1.0, "device_s": 0.5}) + "\n")
    out = tmp_path / "set"
    said = kernelwright(capsys, "tasks", "manifest", *suites, "--out", out, "--answers", answers, "--parquet", "--json")
    assert said.code == 0
    assert said.data["splits"]["test"]["benchmarks"] == 3
    lines = [json.loads(line) for line in (out / "tasks.jsonl").read_text().splitlines()]
    copy = next(line for line in lines if line["benchmark"] == "copy")
    assert (copy["accepted"], copy["reason"], copy["split"]) == (False, "blind", "test")
    task: Task = load_task(out / copy["file"])
    assert task.fingerprint == copy["id"]
    datasets = pytest.importorskip("datasets")
    loaded = datasets.Dataset.from_parquet(str(out / "test.parquet"))
    assert sorted(loaded["benchmark"]) == ["Apps_STENCIL", "copy", "lulesh"]


def test_a_folder_without_a_listing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = kernelwright(capsys, "tasks", "manifest", tmp_path, "--out", tmp_path / "set", "--json")
    assert said.code == 2
    assert "suite.json" in said.error["what"]


def test_a_row_says_what_was_left_out(suites: tuple[Path, Path], tmp_path: Path) -> None:
    (suites[0] / "lulesh.toml").unlink()
    made, left_out = rows(suites, {}, tmp_path)
    assert "lulesh" not in by_name(made)
    assert len(left_out) == 1
    assert "lulesh.toml" in left_out[0]
    assert [path.name for path in write(made, tmp_path / "set", parquet=False)] == ["tasks.jsonl"]
