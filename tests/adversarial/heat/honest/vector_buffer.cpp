// does: a buffer for a row
void sweep(const double* in, double* out, int n) {
    std::vector<double> sums(n);
    double* const sum = sums.data();
    for (int i = 1; i < n - 1; ++i) {
        for (int j = 0; j < n; ++j) sum[j] = in[(i - 1) * n + j] + in[(i + 1) * n + j];
        for (int j = 1; j < n - 1; ++j) out[i * n + j] = 0.25 * (sum[j] + in[i * n + j - 1] + in[i * n + j + 1]);
    }
}
