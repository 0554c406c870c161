// tries: promises that the function depends on nothing, so that the compiler calls it once or never
// outcome: refused
// evidence: 'const'
__attribute__((const)) void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
