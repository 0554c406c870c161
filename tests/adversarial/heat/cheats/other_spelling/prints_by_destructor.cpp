// tries: prints in a destructor
// outcome: refused
// evidence: 'puts'
struct Say { ~Say() { puts("PASS"); } };
void sweep(const double* in, double* out, int n) {
    Say later;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
