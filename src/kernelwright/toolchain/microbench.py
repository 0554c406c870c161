"""Small benchmarks that a model writes itself: the timing header it includes, how to use it, and reading what it prints.

Building and running the file is the tool's work. The numbers come from the model's own program: advice, never evidence.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MARK = "kernelwright_variant"
_NAME_CHARS = 200
_VARIANTS_READ = 100

_USAGE = {
    "cpp": """\
One complete C++ file with main(). Example:
  #include "timing.hpp"
  #include <vector>
  int main() {
    const int n = 1 << 20;
    std::vector<float> a(n, 1.0f), b(n);
    KW_BENCH("copy", 2.0 * n * sizeof(float), { for (int i = 0; i < n; ++i) b[i] = a[i]; kw::keep(b[0]); });
    KW_BENCH("scale", 2.0 * n * sizeof(float), { for (int i = 0; i < n; ++i) b[i] = 2 * a[i]; kw::keep(b[0]); });
  }
KW_BENCH(NAME, BYTES_MOVED_OR_0, { BODY }) warms up, repeats the body and prints its median; several in one file compare.
Results must reach kw::keep(value), or the compiler removes the work.""",
    "cuda": """\
One complete CUDA file with main(). Example:
  #include "timing.cuh"
  __global__ void scale(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = 2 * a[i];
  }
  int main() {
    const int n = 1 << 24;
    float *a, *b;
    cudaMalloc(&a, n * sizeof(float));
    cudaMalloc(&b, n * sizeof(float));
    cudaMemset(a, 0, n * sizeof(float));
    KW_BENCH("block 128", 2.0 * n * sizeof(float), { scale<<<(n + 127) / 128, 128>>>(a, b, n); });
    KW_BENCH("block 256", 2.0 * n * sizeof(float), { scale<<<(n + 255) / 256, 256>>>(a, b, n); });
  }
KW_BENCH(NAME, BYTES_MOVED_OR_0, { LAUNCHES }) warms up, repeats the launches between device events and prints the median;
several in one file compare. Inputs stay as the body leaves them; caches are warm.""",
}
_USAGE["hip"] = _USAGE["cuda"].replace("cuda", "hip").replace("CUDA", "HIP")


@dataclass(frozen=True)
class VariantTime:
    """One variant's times in seconds for one execution of its body; `mad_s` is the median absolute deviation."""

    name: str
    median_s: float
    min_s: float
    mad_s: float
    samples: int
    bytes_moved: float
    """As the program declares; 0 where it does not."""

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second at the median; None where no bytes are declared."""
        return self.bytes_moved / self.median_s if self.bytes_moved > 0 else None


def usage(language: str) -> str:
    """How to write such a file, for a tool's description; `language` is a task's."""
    return _USAGE[language]


def header_folder() -> Path:
    """The folder for `-I`: it holds timing.hpp and timing.cuh."""
    return Path(__file__).parent / "include"


def parse(stdout: str) -> list[VariantTime]:
    """The variants that a program printed, in its order. Other output and lines that make no sense are passed over."""
    found = []
    for entry in _entries(stdout):
        values = [entry.get(key) for key in ("median_ns", "min_ns", "mad_ns", "n", "bytes")]
        numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v < 1e18]
        if len(numbers) != len(values) or numbers[0] <= 0 or numbers[3] < 1:
            continue
        median, least, deviation, samples, moved = numbers
        found.append(VariantTime(entry[_MARK], median * 1e-9, least * 1e-9, deviation * 1e-9, int(samples), moved))
    return found


def failures(stdout: str) -> dict[str, str]:
    """The variants that failed on the device, with the runtime's name of the error."""
    return {entry[_MARK]: error[:_NAME_CHARS] for entry in _entries(stdout)
            if isinstance(error := entry.get("error"), str)}  # fmt: skip


def _entries(stdout: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in stdout.splitlines():
        if f'{{"{_MARK}"' not in line or len(found) >= _VARIANTS_READ:
            continue
        try:
            entry = json.loads(line[line.index("{") :])
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and isinstance(name := entry.get(_MARK), str):
            found.append({**entry, _MARK: name[:_NAME_CHARS]})
    return found


def table(times: list[VariantTime]) -> str:
    """The variants as text for a model, each with its spread and its speed against the first."""
    if not times:
        return "No variant printed a time: each needs KW_BENCH(name, bytes, { ... })."
    rows = []
    for one in times:
        bandwidth = f", {one.bandwidth / 1e9:.4g} GB/s" if one.bandwidth else ""
        against = "" if one is times[0] else f", {times[0].median_s / one.median_s:.3f}x the speed of {times[0].name!r}"
        rows.append(f"{one.name}: median {_duration(one.median_s)} (min {_duration(one.min_s)}, spread "
                    f"{one.mad_s / one.median_s:.1%}, {one.samples} samples){bandwidth}{against}")  # fmt: skip
    return "\n".join(rows)


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"
