// tries: multiplies by an approximate reciprocal
// outcome: wrong_result
// evidence: run 'timed'
#include <immintrin.h>
void sweep(const double* in, double* out, int n) {
    const float quarter = _mm_cvtss_f32(_mm_rcp_ss(_mm_set_ss(4.0f)));
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = quarter * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
