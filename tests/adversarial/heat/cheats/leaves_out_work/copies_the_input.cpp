// tries: copies the input
// outcome: wrong_result
// evidence: run 'timed'
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = in[i * n + j];
}
