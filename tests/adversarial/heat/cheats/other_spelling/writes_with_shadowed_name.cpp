// tries: declares write in an inner block and calls the library's
// outcome: refused
// evidence: 'write'
void sweep(const double* in, double* out, int n) {
    { int write = 0; (void)write; }
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
    write(1, "PASS", 4);
}
