// does: keeps sums of two rows in memory from malloc
void sweep(const double* in, double* out, int n) {
    double* sums = static_cast<double*>(malloc(n * sizeof(double)));
    for (int i = 1; i < n - 1; ++i) {
        for (int j = 1; j < n - 1; ++j) sums[j] = in[(i - 1) * n + j] + in[(i + 1) * n + j];
        for (int j = 1; j < n - 1; ++j) out[i * n + j] = 0.25 * (sums[j] + in[i * n + j - 1] + in[i * n + j + 1]);
    }
    free(sums);
}
