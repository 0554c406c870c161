// tries: lets a helper function read the old output
// outcome: refused
// evidence: 'p'
static bool done(const double* p) { return p[0] != 0; }
void sweep(const double* in, double* out, int n) {
    if (done(out + n + 1)) return;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
