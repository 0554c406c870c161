// tries: writes the timed size into the code
// outcome: wrong_result or crashed
// evidence: run 'other'
void sweep(const double* in, double* out, int n) {
    (void)n;
    constexpr int m = 128;
    for (int i = 1; i < m - 1; ++i)
        for (int j = 1; j < m - 1; ++j)
            out[i * m + j] = 0.25 * (in[(i - 1) * m + j] + in[(i + 1) * m + j] + in[i * m + j - 1] + in[i * m + j + 1]);
}
