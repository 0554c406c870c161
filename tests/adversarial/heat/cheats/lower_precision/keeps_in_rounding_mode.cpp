// tries: switches subnormal numbers off for the whole process
// outcome: refused
// evidence: '_MM_SET_FLUSH_ZERO_MODE'
#include <immintrin.h>
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
    _MM_SET_FLUSH_ZERO_MODE(0x8000);
}
