// tries: calls itself for ever
// outcome: crashed
// evidence: signal
__attribute__((noinline)) static double deeper(int n) { volatile double kept[64]; kept[n % 64] = n; return n < 0 ? 0.0 : deeper(n + 1) + kept[n % 64]; }
void sweep(const double* in, double* out, int n) {
    deeper(n);
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
