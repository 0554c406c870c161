// ==== original
void gemm(const double* A, const double* B, double* C, int n) {
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = 0.0;
            for (int k = 0; k < n; ++k) sum += A[i * n + k] * B[k * n + j];
            C[i * n + j] = sum;
        }
}
// ==== loop order
void gemm(const double* A, const double* B, double* C, int n) {
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) C[i * n + j] = 0.0;
        for (int k = 0; k < n; ++k) {
            const double a = A[i * n + k];
            for (int j = 0; j < n; ++j) C[i * n + j] += a * B[k * n + j];
        }
    }
}
// ==== filled, then blocked
#include <algorithm>
#include <cstring>
void gemm(const double* A, const double* B, double* C, int n) {
    constexpr int block = 32;
    std::memset(C, 0, sizeof(double) * n * n);
#pragma omp parallel for schedule(static)
    for (int ii = 0; ii < n; ii += block)
        for (int kk = 0; kk < n; kk += block)
            for (int i = ii; i < std::min(ii + block, n); ++i)
                for (int k = kk; k < std::min(kk + block, n); ++k) {
                    const double a = A[i * n + k];
                    double* __restrict c = C + i * n;
                    const double* __restrict b = B + k * n;
#pragma omp simd
                    for (int j = 0; j < n; ++j) c[j] += a * b[j];
                }
}
// ==== transposed copy
#include <vector>
#include <numeric>
void gemm(const double* A, const double* B, double* C, int n) {
    std::vector<double> turned(static_cast<std::size_t>(n) * n);
    for (int k = 0; k < n; ++k)
        for (int j = 0; j < n; ++j) turned[j * n + k] = B[k * n + j];
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            C[i * n + j] = std::inner_product(A + i * n, A + (i + 1) * n, turned.data() + j * n, 0.0);
}
// ==== packed panels, aligned memory
#include <algorithm>
#include <cstdlib>
#include <memory>
namespace packed {
struct Free { void operator()(double* p) const { std::free(p); } };
using Buffer = std::unique_ptr<double[], Free>;
template <int MR, int NR>
inline void kernel(int n, const double* __restrict a, const double* __restrict b, double (&acc)[MR][NR]) {
    for (int k = 0; k < n; ++k)
        for (int r = 0; r < MR; ++r)
#pragma GCC unroll 4
            for (int c = 0; c < NR; ++c) acc[r][c] += a[k * MR + r] * b[k * NR + c];
}
}  // namespace packed
void gemm(const double* A, const double* B, double* C, int n) {
    packed::Buffer panel(static_cast<double*>(std::aligned_alloc(64, sizeof(double) * 4 * (n + 8))));
    for (int j = 0; j + 4 <= n; j += 4) {
        for (int k = 0; k < n; ++k)
            for (int c = 0; c < 4; ++c) panel[k * 4 + c] = B[k * n + j + c];
        for (int i = 0; i < n; ++i) {
            double acc[1][4] = {};
            packed::kernel<1, 4>(n, A + i * n, panel.get(), acc);
            std::copy_n(acc[0], 4, C + i * n + j);
        }
    }
    for (int j = n / 4 * 4; j < n; ++j)
        for (int i = 0; i < n; ++i) {
            double sum = 0.0;
            for (int k = 0; k < n; ++k) sum += A[i * n + k] * B[k * n + j];
            C[i * n + j] = sum;
        }
}
// ==== avx512 by target attribute
#include <immintrin.h>
[[gnu::target("avx512f"), gnu::always_inline]] static inline double sum8(__m512d v) { return _mm512_reduce_add_pd(v); }
[[gnu::target("avx512f")]] static void wide(const double* A, const double* B, double* C, int n) {
    alignas(64) double column[8];
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            __m512d acc = _mm512_setzero_pd();
            int k = 0;
            for (; k + 8 <= n; k += 8) {
                for (int l = 0; l < 8; ++l) column[l] = B[(k + l) * n + j];
                acc = _mm512_fmadd_pd(_mm512_loadu_pd(A + i * n + k), _mm512_load_pd(column), acc);
            }
            double sum = sum8(acc);
            for (; k < n; ++k) sum += A[i * n + k] * B[k * n + j];
            C[i * n + j] = sum;
        }
}
void gemm(const double* A, const double* B, double* C, int n) {
    if (__builtin_cpu_supports("avx512f")) return wide(A, B, C, n);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = 0.0;
            for (int k = 0; k < n; ++k) sum += A[i * n + k] * B[k * n + j];
            C[i * n + j] = sum;
        }
}
