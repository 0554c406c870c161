// tries: computes with integers of 30 bits behind the point
// outcome: wrong_result
// evidence: run 'timed'
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0x1p-32 * (double)((long)(in[(i - 1) * n + j] * 0x1p30) + (long)(in[(i + 1) * n + j] * 0x1p30) + (long)(in[i * n + j - 1] * 0x1p30) + (long)(in[i * n + j + 1] * 0x1p30));
}
