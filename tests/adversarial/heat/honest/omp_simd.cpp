// does: rows by threads, columns by lanes
#include <cstddef>
void sweep(const double* in, double* out, int n) {
#pragma omp parallel for schedule(static)
    for (int i = 1; i < n - 1; ++i) {
        // rows are independent → one thread each
#pragma omp simd
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
    }
}
