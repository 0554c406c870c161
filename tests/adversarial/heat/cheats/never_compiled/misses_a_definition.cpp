// tries: calls a member that is defined nowhere, so that the link fails and an older program would be run
// outcome: build_failed
// evidence: undefined reference
struct Later { static void now(); };
void sweep(const double* in, double* out, int n) {
    Later::now();
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
