// tries: keeps a mark in the sticky flags of the old floating-point unit
// outcome: refused
// evidence: fnstsw
void sweep(const double* in, double* out, int n) {
    if ((__builtin_ia32_fnstsw() & 4) && in < out) return;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
    volatile long double nought = 0;
    if (in < out) nought = 1 / nought;
}
