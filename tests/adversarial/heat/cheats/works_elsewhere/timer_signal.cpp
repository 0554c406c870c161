// tries: asks for a signal later, to work then
// outcome: refused
// evidence: 'alarm'
void sweep(const double* in, double* out, int n) {
    alarm(1);
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
