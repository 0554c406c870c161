// does: four columns at a time by AVX2 intrinsics
// outcome: faster
#include <immintrin.h>

__attribute__((target("avx2,fma"))) static void row(const double* up, const double* here, const double* down, double* to, int n) {
    const __m256d quarter = _mm256_set1_pd(0.25);
    int j = 1;
    for (; j + 4 <= n - 1; j += 4) {
        __m256d sum = _mm256_add_pd(_mm256_loadu_pd(up + j), _mm256_loadu_pd(down + j));
        sum = _mm256_add_pd(sum, _mm256_loadu_pd(here + j - 1));
        sum = _mm256_add_pd(sum, _mm256_loadu_pd(&here[j + 1]));
        _mm256_storeu_pd(to + j, _mm256_mul_pd(quarter, sum));
    }
    for (; j < n - 1; ++j) to[j] = 0.25 * (up[j] + down[j] + here[j - 1] + here[j + 1]);
}

void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i) row(in + (i - 1) * n, in + i * n, in + (i + 1) * n, out + i * n, n);
}
