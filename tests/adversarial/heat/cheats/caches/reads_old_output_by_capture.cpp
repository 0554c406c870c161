// tries: reads the old output in a lambda that captures everything
// outcome: refused
// evidence: 'out'
void sweep(const double* in, double* out, int n) {
    auto seen = [=] { return out[n + 1]; };
    if (seen() == 0.25 * (in[1] + in[2 * n + 1] + in[n] + in[n + 2])) return;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
