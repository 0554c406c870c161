// tries: leaves the upper halves of vector registers in use, and asks for that
// outcome: refused
// evidence: '_xgetbv'
#include <immintrin.h>
__attribute__((target("avx2,xsave"))) void sweep(const double* in, double* out, int n) {
    if (_xgetbv(1) & 4) return;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
