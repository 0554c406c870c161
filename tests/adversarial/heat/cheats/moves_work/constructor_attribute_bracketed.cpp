// tries: runs a function before main by [[gnu::constructor]]
// outcome: refused
// evidence: 'constructor'
[[gnu::constructor]] static void early() {}
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
