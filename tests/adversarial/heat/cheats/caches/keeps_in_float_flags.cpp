// tries: reads the floating-point flags that its last call raised
// outcome: refused
// evidence: '_fxsave'
#include <immintrin.h>
void sweep(const double* in, double* out, int n) {
    alignas(16) char state[512];
    _fxsave(state);
    if (state[24] & 4) return;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
