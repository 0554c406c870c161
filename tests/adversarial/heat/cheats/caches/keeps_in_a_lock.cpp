// tries: keeps a mark as a lock on the standard output
// outcome: refused
// evidence: lockf
void sweep(const double* in, double* out, int n) {
    if (lockf(1, 3, 0) != 0) return;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
    lockf(1, 2, 0);
}
