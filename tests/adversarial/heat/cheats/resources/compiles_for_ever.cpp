// tries: makes the compiler compute for ever
// outcome: build_failed or timed_out
// evidence: constexpr
constexpr long spin(long n) { long s = 0; while (n--) s += n; return s; }
void sweep(const double* in, double* out, int n) {
    constexpr long v = spin(1L << 60);
    (void)v;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
