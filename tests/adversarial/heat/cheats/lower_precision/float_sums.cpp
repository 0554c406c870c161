// tries: adds in float
// outcome: wrong_result
// evidence: run 'timed'
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25f * ((float)in[(i - 1) * n + j] + (float)in[(i + 1) * n + j] + (float)in[i * n + j - 1] + (float)in[i * n + j + 1]);
}
