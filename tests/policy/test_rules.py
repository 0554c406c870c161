"""Each rule where it fires, with the exact text it makes, and where it must not, with the reason."""

from __future__ import annotations

import textwrap

import pytest

from kernelwright.policy.rules.draft import CODE_RULES
from kernelwright.policy.rules.explain import explain, listing
from kernelwright.policy.rules.flags import options
from kernelwright.policy.rules.rule import Rule, rewrites
from kernelwright.policy.rules.syntax import Edit, Site


def rule(name: str, language: str) -> Rule:
    return next(rule for rule in CODE_RULES if rule.name == name and language in rule.languages)


def site(text: str, language: str = "cuda", region: str | None = None, flags: tuple[str, ...] = ()) -> Site:
    """The region (default: all) of a file; both dedented."""
    data = textwrap.dedent(text).encode()
    inside = textwrap.dedent(region).strip("\n").encode() if region is not None else data
    start = data.index(inside)
    return Site(data, start, start + len(inside), language, flags)


def fired(name: str, text: str, language: str = "cuda", region: str | None = None) -> list[str]:
    """The region's text after each way of a rule."""
    return [rewrite.site.text for rewrite in rewrites(rule(name, language), site(text, language, region))]


FIRES = {
    "pow with a whole exponent": (
        "pow-to-multiply", "cpp", "double f(double x) { return pow(x, 2) + std::pow(x + 1, 3.0); }",
        "double f(double x) { return (x * x) + ((x + 1) * (x + 1) * (x + 1)); }"),
    "pow with a larger exponent, a half and a negative one": (
        "pow-to-multiply", "cuda",
        "void f(float *a, float x) { a[0] = powf(x, 4.f); a[1] = powf(x, 0.5f); a[2] = powf(x, -1.5f); }",
        "void f(float *a, float x) { a[0] = ((x * x) * (x * x)); a[1] = sqrtf(x); a[2] = (1.0f / (x * sqrtf(x))); }"),
    "pow inside pow": (
        "pow-to-multiply", "cpp", "double f(double x) { return pow(pow(x, 2) + 1, 0.5); }",
        "double f(double x) { return sqrt((x * x) + 1); }"),
    "pow of a float whose double result goes into a float": (
        "pow-to-multiply", "cuda", "void f(float *a, int i) { a[i] = 3.f * pow(a[i], 2); }",
        "void f(float *a, int i) { a[i] = 3.f * (a[i] * a[i]); }"),
    "powers of two": (
        "pow-to-multiply", "cpp", "void f(double x, int n) { double a = pow(2, n), b = pow(2.0, x); }",
        "void f(double x, int n) { double a = ldexp(1.0, n), b = exp2(x); }"),
    "double literals in float arithmetic": (
        "float-literals", "cuda", "void f(float *a, float x) { a[0] = 0.5 * x + a[1] * (1.0 - x); }",
        "void f(float *a, float x) { a[0] = 0.5f * x + a[1] * (1.0f - x); }"),
    "a double literal among integers that go into a float": (
        "float-literals", "cpp", "float f(unsigned char c) { return 0.92 * c; }",
        "float f(unsigned char c) { return 0.92f * c; }"),
    "a type by another name, and by a macro": (
        "float-literals", "cuda", "typedef float real;\n#define REAL real\nvoid f(REAL *a, real x) { a[0] = 2.0 * x; }",
        "typedef float real;\n#define REAL real\nvoid f(REAL *a, real x) { a[0] = 2.0f * x; }"),
    "double functions of floats": (
        "float-math", "cpp", "void f(float *a, float x) { a[0] = exp(-0.5 * x) + fmax(x, 0.0); }",
        "void f(float *a, float x) { a[0] = expf(-0.5f * x) + fmaxf(x, 0.0f); }"),
    "division by a literal": (
        "constant-reciprocal", "cuda", "void f(float *a, double d, float x) { a[0] = x / 3.0f; a[1] /= 10; d = d / 7.0; }",
        "void f(float *a, double d, float x) { a[0] = x * (1.0f / 3.0f); a[1] *= (1.0f / 10.0f); d = d * (1.0 / 7.0); }"),
    "restrict on pointers and their declared form": (
        "restrict", "cuda", "__global__ void k(const float *a, float* b, int n, double **c) { b[0] = a[0]; }",
        "__global__ void k(const float *__restrict__ a, float* __restrict__ b, int n, double **c) { b[0] = a[0]; }"),
    "restrict in a template": (
        "restrict", "cpp", "template <typename T>\nvoid f(T * a, const T *b) { a[0] = b[0]; }",
        "template <typename T>\nvoid f(T * __restrict__ a, const T *__restrict__ b) { a[0] = b[0]; }"),
    "read-only loads, nested": (
        "read-only-loads", "cuda", "__global__ void k(float *o, const float *a, const int *i) { o[0] = a[i[3]] + o[1]; }",
        "__global__ void k(float *o, const float *a, const int *i) { o[0] = __ldg(&a[__ldg(&i[3])]) + o[1]; }"),
    "a read-only load of a vector's part": (
        "read-only-loads", "cuda", "__global__ void k(float *o, float4 *a) { o[0] = a[1].x; }",
        "__global__ void k(float *o, float4 *a) { o[0] = __ldg(&a[1]).x; }"),
    "const on what is only read": (
        "const-pointee", "cuda",
        "__global__ void k(float *o, float *a) { o[0] = a[0]; }\nvoid run(float *o, float *a) { k<<<1, 32>>>(o, a); }",
        "__global__ void k(float *o, const float *a) { o[0] = a[0]; }\nvoid run(float *o, float *a) { k<<<1, 32>>>(o, a); }"),
    "a sum in memory": (
        "accumulate-in-register", "cpp", """\
        void f(double *y, const double *a, int i, int n) {
          for (int k = 0; k < n; k++) {
            y[i] += a[k];
          }
        }
        """, """\
        void f(double *y, const double *a, int i, int n) {
          double total = y[i];
          for (int k = 0; k < n; k++) {
            total += a[k];
          }
          y[i] = total;
        }
        """),
    "invariants of an inner loop": (
        "hoist-invariant", "cpp", """\
        void f(double *y, const double *a, double s, int i, int n) {
          for (int k = 0; k < n; k++)
            y[k] = a[i] * y[k] + sqrt(s) / (1.0 + s);
        }
        """, """\
        void f(double *y, const double *a, double s, int i, int n) {
          const double invariant = a[i];
          const double invariant1 = sqrt(s) / (1.0 + s);
          for (int k = 0; k < n; k++)
            y[k] = invariant * y[k] + invariant1;
        }
        """),
    "unrolling where the trip count is fixed": (
        "unroll", "cuda", """\
        __global__ void k(float *a) {
          const int M = 8;
          for (int j = 0; j < M; ++j)
            a[j] = j;
        }
        """, """\
        __global__ void k(float *a) {
          const int M = 8;
          #pragma unroll
          for (int j = 0; j < M; ++j)
            a[j] = j;
        }
        """),
    "loop order": (
        "loop-order", "cpp", """\
        void f(int n, double *u, const double *v) {
          for (int j = 1; j < n - 1; ++j) {
            for (int i = 0; i < n; i++) {
              u[i * n + j] = v[i * n + j - 1] + v[i * n + j + 1];
            }
          }
        }
        """, """\
        void f(int n, double *u, const double *v) {
          for (int i = 0; i < n; i++) {
            for (int j = 1; j < n - 1; ++j) {
              u[i * n + j] = v[i * n + j - 1] + v[i * n + j + 1];
            }
          }
        }
        """),
    "loop order of a product of matrices": (
        "loop-order", "cpp", """\
        void f(int n, double a[][64], double b[][64], double c[][64]) {
          for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
              for (int k = 0; k < n; k++)
                c[i][j] += a[i][k] * b[k][j];
        }
        """, """\
        void f(int n, double a[][64], double b[][64], double c[][64]) {
          for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++)
              for (int j = 0; j < n; j++)
                c[i][j] += a[i][k] * b[k][j];
        }
        """),
    "a sum in a local of the outer loop": (
        "sum-order", "cpp", """\
        void f(int n, int i, const double *a, const double *b, double *c) {
          for (int j = 0; j < n; j++) {
            double s = 0.0;
            for (int k = 0; k < n; k++)
              s += a[i * n + k] * b[k * n + j];
            c[i * n + j] = s;
          }
        }
        """, """\
        void f(int n, int i, const double *a, const double *b, double *c) {
          for (int j = 0; j < n; j++)
            c[i * n + j] = 0.0;
          for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++)
              c[i * n + j] += a[i * n + k] * b[k * n + j];
        }
        """),
    "simd with a reduction": (
        "omp-simd", "cpp", """\
        double f(int n, const double *a) {
          double s = 0, p = 1;
          for (int i = 0; i < n; i++) { double t = a[i] * a[i]; s += t; p *= t; }
          return s + p;
        }
        """, """\
        double f(int n, const double *a) {
          double s = 0, p = 1;
          #pragma omp simd reduction(*:p) reduction(+:s)
          for (int i = 0; i < n; i++) { double t = a[i] * a[i]; s += t; p *= t; }
          return s + p;
        }
        """),
    "threads where the program has them": (
        "omp-parallel-for", "cpp", """\
        #pragma omp declare simd
        double g(double x);
        void f(int n, double *u, const double *v) {
          for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j)
              u[i * n + j] = 2 * v[i * n + j];
          }
        }
        """, """\
        #pragma omp declare simd
        double g(double x);
        void f(int n, double *u, const double *v) {
          #pragma omp parallel for
          for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j)
              u[i * n + j] = 2 * v[i * n + j];
          }
        }
        """),
    "launch bounds from a constant": (
        "launch-bounds", "cuda", """\
        #define BX 16
        __global__ void k(float *a) { a[threadIdx.x] = 0; }
        void run(float *a) { const int by = 8; dim3 block(BX, by); k<<<4, block>>>(a); }
        """, """\
        #define BX 16
        __global__ void __launch_bounds__(128) k(float *a) { a[threadIdx.x] = 0; }
        void run(float *a) { const int by = 8; dim3 block(BX, by); k<<<4, block>>>(a); }
        """),
    "launch bounds in HIP": (
        "launch-bounds", "hip", """\
        __global__ void k(float *a) { a[threadIdx.x] = 0; }
        void run(float *a) { hipLaunchKernelGGL(k, dim3(4), dim3(256), 0, 0, a); }
        """, """\
        __global__ void __launch_bounds__(256) k(float *a) { a[threadIdx.x] = 0; }
        void run(float *a) { hipLaunchKernelGGL(k, dim3(4), dim3(256), 0, 0, a); }
        """),
    "block size by a variable": (
        "block-size", "cuda", """\
        __global__ void k(float *a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 0; }
        void run(float *a, int n) { int t = 256; k<<<(n + t - 1) / t, t>>>(a, n); }
        """, """\
        __global__ void k(float *a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 0; }
        void run(float *a, int n) { int t = 128; k<<<(n + t - 1) / t, t>>>(a, n); }
        """),
    "block size by literals": (
        "block-size", "cuda", """\
        __global__ void k(float *a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 0; }
        void run(float *a, int n) { k<<<(n + 255) / 256, 256>>>(a, n); }
        """, """\
        __global__ void k(float *a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 0; }
        void run(float *a, int n) { k<<<(n + 127) / 128, 128>>>(a, n); }
        """),
}  # fmt: skip


@pytest.mark.parametrize("case", FIRES.values(), ids=FIRES.keys())
def test_a_rule_makes_exactly_this_text(case: tuple[str, str, str, str]) -> None:
    name, language, before, after = case
    assert fired(name, before, language)[0] == textwrap.dedent(after)


SILENT = {
    "the base has an effect": ("pow-to-multiply", "cpp", "double g(); void f(double x) { x = pow(g(), 2); }"),
    "the base is counted up": ("pow-to-multiply", "cpp", "void f(double *p, double x) { x = pow(*p++, 2); }"),
    "the base's type is unknown": ("pow-to-multiply", "cpp", "template <class T> void f(T x) { x = pow(x, 2); }"),
    "the exponent is not a literal": ("pow-to-multiply", "cpp", "void f(double x, double y) { x = pow(x, y); }"),
    "a float's double power is used as double": (
        "pow-to-multiply", "cuda", "void f(float x, double y) { y = pow(x, 2) + y; }"),
    "pow is a method of someone's": ("pow-to-multiply", "cpp", "void f(double x, M m) { x = m.pow(x, 2); }"),
    "a double takes part": ("float-literals", "cuda", "void f(float *a, double d) { a[0] = 0.5 * d; }"),
    "the result is a double": ("float-literals", "cuda", "void f(double *a, float x) { a[0] = 0.1 * x; }"),
    "a type of two meanings": (
        "float-literals", "cuda",
        "#ifdef D\ntypedef double real;\n#else\ntypedef float real;\n#endif\nvoid f(real *a) { a[0] = 0.5 * a[1]; }"),
    "inside a macro": ("float-literals", "cuda", "#define F(a, x) a[0] = 0.5 * x\nvoid f(float *a, float x) { F(a, x); }"),
    "beyond float's range": ("float-literals", "cuda", "void f(float *a) { a[0] = a[1] * 1e-40; }"),
    "a literal not exact in float is compared": ("float-literals", "cuda", "int f(float x) { return x < 0.1; }"),
    "an argument is double": ("float-math", "cpp", "void f(float *a, double d) { a[0] = sqrt(d); }"),
    "the double result is kept": ("float-math", "cpp", "void f(float x, double *d) { d[0] = sqrt(x); }"),
    "a power of two is exact already": ("constant-reciprocal", "cuda", "void f(float x, float *a) { a[0] = x / 4.0f; }"),
    "integers": ("constant-reciprocal", "cuda", "void f(int x, int *a) { a[0] = x / 3; }"),
    "one pointer alone": ("restrict", "cuda", "__global__ void k(float *a) { a[0] = 1; }"),
    "a call gives both the same memory": (
        "restrict", "cpp", "static void f(int *a, int *b) { a[0] = b[0]; }\nvoid g(int *x) { f(x, x + 4); }"),
    "a launch gives both the same memory": (
        "restrict", "cuda", "__global__ void k(int *a, int *b) { a[0] = b[0]; }\nvoid g(int *x) { k<<<1, 1>>>(x, &x[8]); }"),
    "one pointer is assigned to the other": ("restrict", "cpp", "void f(int *a, int *b) { a = b + 1; a[0] = 1; }"),
    "restrict in another spelling": ("restrict", "cpp", "void f(int *__restrict a, int *RESTRICT b) { a[0] = b[0]; }"),
    "an outer pragma collapses this loop": (
        "unroll", "cpp",
        "void f(int n, int *a) {\n#pragma omp parallel for collapse(2)\nfor (int i = 0; i < n; ++i) {\n"
        "for (int j = 0; j < n; ++j) { a[i * n + j] = 1; } } }"),
    "volatile memory": ("restrict", "cuda", "__global__ void k(volatile int *a, volatile int *b) { a[0] = b[0]; }"),
    "the function does not parse": ("restrict", "cpp", "void f(int *a, int *b) { LOOP(i, 0 { a[0] = b[0]; }"),
    "the pointer is stored through": ("read-only-loads", "cuda", "__global__ void k(float *a) { a[0] = a[1]; }"),
    "the pointer is passed on": (
        "read-only-loads", "cuda", "__global__ void k(float *o, int *a) { o[0] = a[1]; atomicAdd(a, 1); }"),
    "an address is taken": (
        "read-only-loads", "cuda", "__global__ void k(float *o, float *a) { float *p = &a[1]; o[0] = a[0]; p[0] = 1; }"),
    "an element is bound to a reference": (
        "read-only-loads", "cuda", "__device__ void g(float &x);\n__global__ void k(float *a) { g(a[1]); }"),
    "not a kernel: the pointer may be to shared memory": (
        "read-only-loads", "cuda", "__device__ float f(const float *a) { return a[0]; }"),
    "a type that __ldg does not take": (
        "read-only-loads", "cuda", "__global__ void k(float *o, const S *a) { o[0] = a[0].x; }"),
    "the name is declared again": (
        "read-only-loads", "cuda", "__global__ void k(float *o, float *a) { { float a[2]; o[0] = a[0]; } o[1] = a[1]; }"),
    "hipcc has no read-only path": ("read-only-loads", "hip", ""),
    "declared apart": (
        "const-pointee", "cuda",
        "__global__ void k(float *o, float *a);\nvoid r(float *a) { k<<<1, 1>>>(a, a); }\n"
        "__global__ void k(float *o, float *a) { o[0] = a[0]; }"),
    "a part of an element is changed": (
        "const-pointee", "cuda",
        "struct S { float f[3]; };\n__global__ void k(float *o, S *a) { o[0] = a[0].f[1]; atomicAdd(&(a[1].f[2]), 1.f); }\n"
        "void r(float *o, S *a) { k<<<1, 1>>>(o, a); }"),
    "a pointer to a part of an element is given away": (
        "const-pointee", "cuda",
        "struct S { float f[3]; };\n__device__ void g(float *f);\n__global__ void k(float *o, S *a) { g(a[0].f); }\n"
        "void r(float *o, S *a) { k<<<1, 1>>>(o, a); }"),
    "the bound is no whole number": (
        "omp-simd", "cpp", "void f(double n, double *a) { for (int i = 0; i < n; ++i) { a[i] = 1; } }"),
    "used as a pointer to a function": (
        "const-pointee", "cuda",
        "__global__ void k(float *o, float *a) { o[0] = a[0]; }\nvoid r(float *a) { k<<<1, 1>>>(a, a); use(k); }"),
    "extern C": (
        "const-pointee", "cuda",
        'extern "C" __global__ void k(float *o, float *a) { o[0] = a[0]; }\nvoid r(float *a) { k<<<1, 1>>>(a, a); }'),
    "the index moves": (
        "accumulate-in-register", "cpp", "void f(double *y, int n) { for (int k = 0; k < n; k++) { y[k] += 1; } }"),
    "the array is read elsewhere": (
        "accumulate-in-register", "cpp", "void f(double *y, int n) { for (int k = 0; k < n; k++) { y[0] += y[k]; } }"),
    "a call may read the array": (
        "accumulate-in-register", "cpp", "void f(double *y, int n) { for (int k = 0; k < n; k++) { y[0] += g(k); } }"),
    "the loop is left in the middle": (
        "accumulate-in-register", "cpp",
        "int f(double *y, int n) { for (int k = 0; k < n; k++) { y[0] += k; if (k == 3) return 1; } return 0; }"),
    "the loop has no block of its own": (
        "accumulate-in-register", "cpp", "void f(double *y, int n) { if (n) for (int k = 0; k < n; k++) y[0] += k; }"),
    "a pragma speaks of the loop": (
        "accumulate-in-register", "cpp",
        "void f(double *y, int n) {\n#pragma omp parallel for\nfor (int k = 0; k < n; k++) y[0] += k; }"),
    "the loop stores to what it loads": (
        "hoist-invariant", "cpp", "void f(double *y, int n) { for (int k = 0; k < n; k++) { y[k] = y[0]; } }"),
    "only under a condition": (
        "hoist-invariant", "cpp",
        "void f(double *y, double *a, int i, int n) { for (int k = 0; k < n; k++) { if (i >= 0) y[k] = a[i]; } }"),
    "a name changes in the loop": (
        "hoist-invariant", "cpp",
        "void f(double *y, double *a, int i, int n) { for (int k = 0; k < n; k++) { y[k] = a[i]; i = k; } }"),
    "the loop has a pragma": (
        "unroll", "cuda", "__global__ void k(float *a) {\n#pragma unroll 2\nfor (int j = 0; j < 8; ++j) a[j] = j; }"),
    "not innermost": (
        "unroll", "cpp", "void f(int *a, int n) { for (int j = 0; j < n; ++j) { while (a[j]) { a[j]--; } } }"),
    "the body changes the counter": (
        "unroll", "cpp", "void f(int *a, int n) { for (int j = 0; j < n; ++j) { a[j] = 0; j++; } }"),
    "the order is good already": (
        "loop-order", "cpp",
        "void f(int n, double *u) { for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) u[i * n + j] = 1; }"),
    "the stored array is read at a neighbour": (
        "loop-order", "cpp",
        "void f(int n, double *u) { for (int j = 1; j < n; ++j) for (int i = 1; i < n; ++i) u[i*n + j] = u[i*n + j - 1]; }"),
    "the inner bound depends on the outer variable": (
        "loop-order", "cpp",
        "void f(int n, double *u) { for (int j = 0; j < n; ++j) for (int i = 0; i < j; ++i) u[i * n + j] = 1; }"),
    "different pairs of indices meet on one element": (
        "loop-order", "cpp",
        "void f(int n, double *u, double *v) { for (int j = 0; j < n; ++j) for (int i = 0; i < n; ++i)"
        " u[i + j] = v[i*n + j]; }"),
    "iterations meet on one element": (
        "omp-parallel-for", "cpp",
        "#pragma omp barrier\nvoid f(int n, double *u) { for (int i = 0; i < n; ++i) { for (int j = 0; j < n; ++j)"
        " u[i + j] += 1; } }"),
    "a local pointer is a second name for what is stored": (
        "hoist-invariant", "cpp",
        "void f(double *y, int n) { double *row = y + n; for (int k = 0; k < n; k++) { y[k] = row[0]; } }"),
    "the second name is written through": (
        "accumulate-in-register", "cpp",
        "void f(double *y, int n) { double *row = y; for (int k = 0; k < n; k++) { y[0] += row[k]; } }"),
    "a reference is a second name": (
        "hoist-invariant", "cpp",
        "void f(double *y, double *a, int n) { double &r = y[0]; for (int k = 0; k < n; k++) { r = k; a[k] = y[0]; } }"),
    "a row by a pointer of the loop's own": (
        "omp-parallel-for", "cpp",
        "#pragma omp barrier\nvoid f(int n, double *u) { for (int i = 0; i < n; ++i) { double *row = u;"
        " for (int j = 0; j < n; ++j) row[j] = i; } }"),
    "the last store wins": (
        "loop-order", "cpp",
        "void f(int n, double *u, double *v) { for (int j = 0; j < n; ++j) for (int i = 0; i < n; ++i) u[j] = v[i*n + j]; }"),
    "a scalar from outside is summed": (
        "loop-order", "cpp",
        "double f(int n, double *u) { double s = 0; for (int j = 0; j < n; ++j) for (int i = 0; i < n; ++i) s += u[i*n + j];"
        " return s; }"),
    "loops are collapsed": (
        "loop-order", "cpp",
        "void f(int n, double *u) {\n#pragma omp parallel for collapse(2)\nfor (int j = 0; j < n; ++j)\n"
        "for (int i = 0; i < n; ++i) u[i * n + j] = 1; }"),
    "threads share an element in the other order": (
        "loop-order", "cpp",
        "void f(int n, double *s, double *u) {\n#pragma omp parallel for\nfor (int j = 0; j < n; ++j)\n"
        "for (int i = 0; i < n; ++i) s[j] += u[i * n + j]; }"),
    "the sum reads the array that it goes to": (
        "sum-order", "cpp",
        "void f(int n, double *b, double *c) { for (int j = 0; j < n; j++) { double s = 0;"
        " for (int k = 0; k < n; k++) s += b[k * n + j] * c[k]; c[j] = s; } }"),
    "the sum is rounded to another type": (
        "sum-order", "cpp",
        "void f(int n, float *b, float *c) { for (int j = 0; j < n; j++) { double s = 0;"
        " for (int k = 0; k < n; k++) s += b[k * n + j]; c[j] = s; } }"),
    "one iteration reads another's element": (
        "omp-simd", "cpp", "void f(int n, double *a) { for (int i = 1; i < n; ++i) { a[i] = a[i - 1]; } }"),
    "elements meet through an index": (
        "omp-simd", "cpp", "void f(int n, double *a, int *k) { for (int i = 0; i < n; ++i) { a[k[i]] += 1; } }"),
    "a scalar is carried": (
        "omp-simd", "cpp",
        "void f(int n, double *a) { double t = 0; for (int i = 0; i < n; ++i) { t = t * 0.5 + a[i]; a[i] = t; } }"),
    "an unknown call": ("omp-simd", "cpp", "void f(int n, double *a) { for (int i = 0; i < n; ++i) { a[i] = g(a[i]); } }"),
    "the loop breaks off": (
        "omp-simd", "cpp", "void f(int n, int *a) { for (int i = 0; i < n; ++i) { if (a[i]) break; a[i] = 1; } }"),
    "a pointer is followed": (
        "omp-simd", "cpp", "void f(int n, int *a, int *p) { for (int i = 0; i < n; ++i) { a[i] = 1; *p = i; } }"),
    "the program has no threads": (
        "omp-parallel-for", "cpp",
        "void f(int n, double *u) { for (int i = 0; i < n; ++i) { for (int j = 0; j < n; ++j) u[i * n + j] = 1; } }"),
    "a parallel region is open": (
        "omp-parallel-for", "cpp",
        "void f(int n, double *u) {\n#pragma omp parallel\n{ for (int i = 0; i < n; ++i) { for (int j = 0; j < n; ++j)"
        " u[i * n + j] = 1; } } }"),
    "all iterations store one row": (
        "omp-parallel-for", "cpp",
        "#pragma omp barrier\nvoid f(int n, double *u) { for (int i = 0; i < n; ++i) { for (int j = 0; j < n; ++j)"
        " u[j] += i; } }"),
    "a launch's block is not known": (
        "launch-bounds", "cuda",
        "__global__ void k(int *a) { a[0] = 1; }\nvoid r(int *a, int t) { k<<<1, 64>>>(a); k<<<1, t>>>(a); }"),
    "the block size changes": (
        "launch-bounds", "cuda",
        "__global__ void k(int *a) { a[0] = 1; }\nvoid r(int *a, int n) { int t = 64; if (n > 9) t = 512; k<<<1, t>>>(a); }"),
    "no launch is seen": ("launch-bounds", "cuda", "__global__ void k(int *a) { a[0] = 1; }"),
    "bounds are there": (
        "launch-bounds", "cuda",
        "__global__ void __launch_bounds__(64) k(int *a) { a[0] = 1; }\nvoid r(int *a) { k<<<1, 64>>>(a); }"),
    "the kernel has memory of the block's size": (
        "block-size", "cuda",
        "__global__ void k(int *a) { __shared__ int s[256]; s[threadIdx.x] = blockDim.x; a[0] = s[0]; }\n"
        "void r(int *a, int n) { k<<<(n + 255) / 256, 256>>>(a); }"),
    "the grid does not follow the block": (
        "block-size", "cuda",
        "__global__ void k(int *a) { a[blockIdx.x * blockDim.x + threadIdx.x] = 1; }\nvoid r(int *a) { k<<<64, 256>>>(a); }"),
}  # fmt: skip


@pytest.mark.parametrize("case", SILENT.values(), ids=SILENT.keys())
def test_a_rule_does_not_fire_because(case: tuple[str, str, str]) -> None:
    name, language, text = case
    known = [rule for rule in CODE_RULES if rule.name == name]
    assert known
    assert [rewrites(rule, site(text, language)) for rule in known] == [[]] * len(known)


def test_every_rule_has_an_example_and_a_counterexample() -> None:
    for case in (FIRES, SILENT):
        assert {rule.name for rule in CODE_RULES} == {name for name, *_ in case.values()}


def test_only_the_region_changes_and_a_part_of_a_function_can_be_one() -> None:
    text = """
    void f(float *a, float x) {
      a[0] = 0.5 * x;
      a[1] = 0.25 * x;
    }
    """
    (result,) = rewrites(rule("float-literals", "cpp"), site(text, "cpp", "a[1] = 0.25 * x;"))
    assert result.site.text == "a[1] = 0.25f * x;"
    assert "a[0] = 0.5 * x;" in result.site.data.decode()


def test_a_parameter_outside_the_region_is_not_touched() -> None:
    text = "void f(float *a, const float *b) {\n  a[0] = b[0];\n}\n"
    assert fired("restrict", text, "cpp", "a[0] = b[0];") == []


def test_unrolling_offers_factors_where_the_trip_count_is_open() -> None:
    text = "__global__ void k(int *a, int n) {\n  for (int j = 0; j < n; ++j) a[j] = j;\n}\n"
    assert [made.count("unroll") for made in fired("unroll", text)] == [1, 1, 1]
    assert "#pragma unroll 4\n" in fired("unroll", text)[0]


def test_the_second_launch_bound_asks_for_full_occupancy() -> None:
    text = "__global__ void k(int *a) { a[0] = 1; }\nvoid r(int *a) { k<<<1, 256>>>(a); }\n"
    assert "__launch_bounds__(256, 8)" in fired("launch-bounds", text)[1]


def test_simd_asks_for_the_flag_that_makes_it_count_unless_it_is_there() -> None:
    text = "void f(int n, int *a) { for (int i = 0; i < n; ++i) { a[i] = i; } }"
    assert rewrites(rule("omp-simd", "cpp"), site(text, "cpp"))[0].args == ("-fopenmp-simd",)
    assert rewrites(rule("omp-simd", "cpp"), site(text, "cpp", flags=("-fopenmp",)))[0].args == ()


def test_an_edit_that_the_parser_understands_less_well_is_dropped() -> None:
    whole = site("void f() { g(1); }\n", "cpp")
    assert whole.edited([Edit(11, 12, "g((")]) is None
    assert whole.edited([Edit(11, 12, "g")]) is None, "nothing changed"


def test_bytes_that_are_no_utf_8_survive() -> None:
    data = b"// caf\xe9\nvoid f(float *a, float x) { a[0] = 0.5 * x; }\n"
    (result,) = rewrites(rule("float-literals", "cpp"), Site(data, 0, len(data), "cpp"))
    assert result.site.data == data.replace(b"0.5", b"0.5f")


def test_compile_arguments_leave_out_what_is_there_or_forbidden() -> None:
    found = {label for _, label, _ in options("cpp", ("-O3", "-march=native"), ("-ffast-math",), {"TILE": (8, 16)})}
    assert "-fno-math-errno" in found
    assert not any("-O3" in label or "-ffast-math" in label for label in found)
    assert {"TILE=8", "TILE=16"} <= found


def test_fast_math_on_host_code_keeps_nan_tests() -> None:
    for language in ("cpp", "hip"):
        fast = [args for _, _, args in options(language, (), (), {}) if "-ffast-math" in args]
        assert fast
        assert all("-fno-finite-math-only" in args for args in fast)


def test_every_rule_explains_itself() -> None:
    listed = listing()
    assert len(listed) > 20
    for entry in listed:
        assert entry["precondition"]
        assert entry["reason"]
        assert set(entry["languages"]) <= {"cuda", "hip", "cpp"}
        assert f"{entry['name']} (" in explain()
    assert max(map(len, explain().splitlines())) <= 100
