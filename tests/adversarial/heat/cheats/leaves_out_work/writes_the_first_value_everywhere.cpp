// tries: computes one value and writes it everywhere
// outcome: wrong_result
// evidence: run 'timed'
void sweep(const double* in, double* out, int n) {
    const double once = 0.25 * (in[1] + in[2 * n + 1] + in[n] + in[n + 2]);
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = once;
}
