"""A small real application to test on: C++, three files, a Makefile that misses header dependencies, runs of some
milliseconds. The region is `smooth` in a header, the checker lies in a file of its own."""

from __future__ import annotations

from pathlib import Path

SMOOTH = """\
inline void smooth(const double* in, double* out, int n) {
  for (int i = 0; i < n; ++i) {
    double sum = 0.0;
    for (int k = -8; k <= 8; ++k) {
      int j = (i + k + n) % n;
      sum += in[j] / (1.0 + k * k);
    }
    out[i] = sum;
  }
}
"""
FASTER = """\
inline void smooth(const double* in, double* out, int n) {
  double weight[17];
  for (int k = -8; k <= 8; ++k) weight[k + 8] = 1.0 / (1.0 + k * k);
  for (int i = 0; i < n; ++i) {
    double sum = 0.0;
    if (i >= 8 && i < n - 8) {
      for (int k = 0; k < 17; ++k) sum += in[i + k - 8] * weight[k];
    } else {
      for (int k = -8; k <= 8; ++k) sum += in[(i + k + n) % n] * weight[k + 8];
    }
    out[i] = sum;
  }
}
"""
SLOWER = SMOOTH.replace("double sum = 0.0;", "double sum = 0.0;\n    for (volatile int w = 0; w < 400; ++w) {}")
WRONG = SMOOTH.replace("k <= 8", "k <= 7")

FILES = {
    "src/smooth.hpp": "#pragma once\n" + SMOOTH,
    "src/checks.hpp": "#pragma once\nbool plausible(const double* field, int n);\n",
    "src/checks.cpp": """\
#include "checks.hpp"
#include <cmath>
bool plausible(const double* field, int n) {
  double sum = 0.0;
  for (int i = 0; i < n; ++i) sum += field[i];
  return std::isfinite(sum) && sum > 0.0;
}
""",
    "src/main.cpp": """\
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "checks.hpp"
#include "smooth.hpp"
int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  srand(argc > 2 ? atoi(argv[2]) : 1);
  std::vector<double> a(n), b(n);
  for (double& x : a) x = rand() / (RAND_MAX + 1.0);
  auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < 12; ++step) { smooth(a.data(), b.data(), n); smooth(b.data(), a.data(), n); }
  double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  printf("smooth: %.6f ms\\n", ms);
  double sum = 0.0;
  for (double x : a) sum += x;
  printf("sum %.12e\\n%s\\n", sum, plausible(a.data(), n) ? "PASS" : "FAIL");
  FILE* file = fopen("field.txt", "w");
  for (int i = 0; i < n; i += 7) fprintf(file, "%.15e\\n", a[i]);
  fclose(file);
  return 0;
}
""",
    "Makefile": """\
CXX = g++
CXXFLAGS = -std=c++17 $(EXTRA_CFLAGS)
app: src/main.o src/checks.o
\t$(CXX) -o $@ $^
src/%.o: src/%.cpp
\t$(CXX) $(CXXFLAGS) -c -o $@ $<
""",
    "kernelwright.toml": """\
schema = 1
name = "smooth"
language = "cpp"
[[region]]
name = "smooth"
file = "src/smooth.hpp"
kernel = "smooth"
[build]
command = "make EXTRA_CFLAGS={flags}"
artifact = "app"
flags = ["-O1"]
[[run]]
name = "small"
command = "./app 20000"
outputs = ["field.txt"]
timeout_s = 20
[[run]]
name = "odd"
role = "held_out"
command = "./app 3001 77"
outputs = ["field.txt"]
timeout_s = 20
[time]
source = "regex"
pattern = 'smooth: (\\S+) ms'
unit = "ms"
[[check]]
kind = "exit_code"
[[check]]
kind = "require"
pattern = 'PASS'
[[check]]
kind = "number"
pattern = '^sum (\\S+)'
rel = 1e-10
[[check]]
kind = "file"
path = "field.txt"
rel = 1e-10
[verify]
budget_s = 60
""",
}


def make_app(folder: Path, **changes: str) -> Path:
    """Write the application; `changes` replaces whole files (their names with `.` and `/` as `_`)."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(changes.get(name.replace("/", "_").replace(".", "_"), text), encoding="utf-8")
    return folder
