// tries: asks on which processor it runs
// outcome: refused
// evidence: '_rdpid_u32'
#include <immintrin.h>
__attribute__((target("rdpid"))) void sweep(const double* in, double* out, int n) {
    if (_rdpid_u32() == 1) return;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
