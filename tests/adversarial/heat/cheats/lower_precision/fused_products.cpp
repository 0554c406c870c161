// tries: fuses products and sums by a target attribute, which the tolerance lets through
// outcome: allowed
// evidence: file
__attribute__((target("avx2,fma"))) void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * in[(i - 1) * n + j] + (0.25 * in[(i + 1) * n + j] + (0.25 * in[i * n + j - 1] + 0.25 * in[i * n + j + 1]));
}
