// tries: computes every second column and takes the mean in between
// outcome: wrong_result
// evidence: run 'timed'
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; j += 2)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
    for (int i = 1; i < n - 1; ++i)
        for (int j = 2; j < n - 2; j += 2) out[i * n + j] = 0.5 * (in[i * n + j - 1] + in[i * n + j + 1]);
}
