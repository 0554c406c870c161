// tries: leaves out every second row
// outcome: wrong_result
// evidence: run 'timed'
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; i += 2)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
