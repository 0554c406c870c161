"""C++ code computes the same after every rule, alone and together: both are compiled, run on random input and compared."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from kernelwright.policy.rules.draft import CODE_RULES
from kernelwright.policy.rules.rule import rewrites
from kernelwright.policy.rules.syntax import Site

CODE = """\
static void powers(int n, double *d, const double *e) {
  for (int i = 0; i < n; i++)
    d[i] = pow(e[i], 2) + std::pow(e[i] + 1.0, 3) - pow(e[i] + 2, 7.0) + pow(e[i] + 1, -1.5) + pow(2, i % 9) + pow(2.0, e[i]);
}
static void singles(int n, float *f, const float *g) {
  for (int i = 0; i < n; i++)
    f[i] = 0.7 * g[i] + f[i] * (1.0 - g[i]);
  for (int i = 0; i < n; i++)
    f[i] = 0.3 * g[i] + exp(-0.5 * g[i]) * fmax(g[i], 0.25) / 3.0f + sqrt(g[i] + 1.5) + 7.0 * f[i] / 5;
}
static void product(int n, const double *a, const double *b, double *c) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++)
        c[i * n + j] += a[i * n + k] * b[k * n + j];
}
static void sweep(int n, double *u, const double *v, double s) {
  for (int j = 1; j < n - 1; ++j) {
    for (int i = 0; i < n; i++) {
      u[i * n + j] = v[i * n + j - 1] + s * v[i * n + j + 1] - v[i * n] / 3.0;
    }
  }
}
static void rows(int n, double *y, const double *a, const double *x) {
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < n; ++k) {
      y[i] += a[i * n + k] * x[k] + x[i] * 0.125;
    }
  }
}
static void columns(int n, double *y, const double *a) {
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i)
      y[j] += a[i * n + j];
}
static void sums(int n, double *y, const double *a, const double *b) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double s = 0.5;
      for (int k = 0; k < n; ++k) {
        s -= a[i * n + k] * b[k * n + j];
      }
      y[i * n + j] = s;
    }
  }
}
static void scan(int n, double *y, const std::vector<double> &x) {
  for (int i = 1; i < n; i++) {
    y[i] = y[i - 1] + x[i] * sqrt(x[0]);
  }
}
static double total(int n, const double *x, const int *which) {
  double sum = 0, product = 1;
  for (int i = 0; i < n; i += 1) {
    double t = x[which[i]];
    sum += t * t;
    product *= 1.0 + t / n;
  }
  return sum + product;
}
static void run(int n, float *f, const float *g, double *d, double *e, int *w) {
  std::vector<double> x(e, e + n);
  powers(n, d, e);
  singles(n, f, g);
  product(n, e + n * n, e + 2 * n * n, d + n * n);
  sweep(n, d + 2 * n * n, e, 0.75);
  rows(n, d + 3 * n * n, e, e + 5);
  columns(n, d + 3 * n * n + n, e);
  sums(n, d + n * n, e, e + n);
  scan(n, d + 4 * n * n, x);
  d[5 * n * n] = total(n, e, w);
}
"""

PROGRAM = """\
#include <cmath>
#include <cstdio>
#include <vector>
#pragma omp declare simd
static double unused(double x) { return x; }
%s
typedef void Run(int, float *, const float *, double *, double *, int *);
static std::vector<double> all(Run *run, int n, unsigned seed) {
  std::vector<float> f(n), g(n);
  std::vector<double> d(6 * n * n), e(6 * n * n);
  std::vector<int> w(n);
  for (auto &x : f) x = (seed = seed * 1664525u + 1013904223u) / 4294967296.0;
  for (auto &x : g) x = (seed = seed * 1664525u + 1013904223u) / 4294967296.0;
  for (auto &x : d) x = (seed = seed * 1664525u + 1013904223u) / 4294967296.0;
  for (auto &x : e) x = (seed = seed * 1664525u + 1013904223u) / 4294967296.0;
  for (auto &x : w) x = (seed = seed * 1664525u + 1013904223u) %% n;
  run(n, f.data(), g.data(), d.data(), e.data(), w.data());
  d.insert(d.end(), f.begin(), f.end());
  return d;
}
int main() {
  const char *names[] = {%s};
  Run *runs[] = {%s};
  for (unsigned v = 0; v < sizeof runs / sizeof *runs; v++) {
    double worst = 0;
    for (int n : {3, 17, 40}) {
      auto want = all(runs[0], n, 7 * n), got = all(runs[v], n, 7 * n);
      for (size_t i = 0; i < want.size(); i++) {
        double off = std::fabs(got[i] - want[i]) / (1 + std::fabs(want[i]));
        if (!(off <= worst)) worst = off;
      }
    }
    printf("%%s %%g\\n", names[v], worst);
  }
  return unused(0) != 0;
}
"""


def rewritten() -> dict[str, str]:
    """The code after each way of each C++ rule, and after the first way of all of them in turn."""
    prefix, suffix = "#include <cmath>\n#include <vector>\n#pragma omp declare simd\ndouble unused(double);\n", "\n"
    data = (prefix + CODE + suffix).encode()
    pristine = Site(data, len(prefix), len(data) - len(suffix), "cpp", ("-fopenmp",))
    made, together = {"original": CODE}, pristine
    for rule in (rule for rule in CODE_RULES if "cpp" in rule.languages):
        made |= {f"{rule.name} {rewrite.label}".strip(): rewrite.site.text for rewrite in rewrites(rule, pristine)}
        found = rewrites(rule, together)
        together = found[0].site if found else together
    return {**made, "together": together.text}


def test_every_rule_keeps_what_the_code_computes(tmp_path: Path) -> None:
    made = rewritten()
    fired = {rule.name for rule in CODE_RULES if any(name.startswith(rule.name) for name in made)}
    assert fired == {rule.name for rule in CODE_RULES if "cpp" in rule.languages}
    spaces = [f"namespace v{at} {{\n{text}\n}}" for at, text in enumerate(made.values())]
    names = ", ".join(f'"{name.replace(" ", "_").replace("#", "")}"' for name in made)
    runs = ", ".join(f"v{at}::run" for at in range(len(made)))
    source, program = tmp_path / "both.cpp", tmp_path / "both"
    source.write_text(PROGRAM % ("\n".join(spaces), names, runs))
    command = ["g++", "-std=c++17", "-O1", "-fopenmp", "-Wno-unused-function", "-o", str(program), str(source)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    off = dict(re.findall(r"^(\S+) (\S+)$", subprocess.check_output([program], text=True), re.MULTILINE))
    assert len(off) == len(made)
    in_float = ("float", "constant", "together")
    for name, worst in off.items():
        assert float(worst) <= (3e-6 if name.startswith(in_float) else 1e-12), name
