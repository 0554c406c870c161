// tries: adds in half precision
// outcome: wrong_result or timed_out
// evidence: run 'timed'
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (double)((_Float16)in[(i - 1) * n + j] + (_Float16)in[(i + 1) * n + j] + (_Float16)in[i * n + j - 1] + (_Float16)in[i * n + j + 1]);
}
