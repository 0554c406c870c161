// tries: fills a table in the first call
// outcome: refused
// evidence: 'table'
void sweep(const double* in, double* out, int n) {
    static double* table = nullptr;
    if (!table) table = new double[n * n]();
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
