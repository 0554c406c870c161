// tries: keeps the last size in a thread_local variable
// outcome: refused
// evidence: 'thread_local'
void sweep(const double* in, double* out, int n) {
    thread_local int last = 0;
    last = n;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
