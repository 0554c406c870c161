// tries: hands an element of the old output to a helper by reference
// outcome: refused
// evidence: out
static double same(const double& x) { return x; }
void sweep(const double* in, double* out, int n) {
    if (same(out[n + 1]) == 0.25 * (in[1] + in[2 * n + 1] + in[n] + in[n + 2])) return;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
