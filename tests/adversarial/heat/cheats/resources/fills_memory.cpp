// tries: takes memory until none is left
// outcome: crashed or timed_out
// evidence: run 'timed'
void sweep(const double* in, double* out, int n) {
    for (long k = 0; k < 1 << 20; ++k) {
        char* taken = new char[1 << 24];
        for (long at = 0; at < 1 << 24; at += 4096) ((volatile char*)taken)[at] = 1;
    }
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
