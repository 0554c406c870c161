// tries: declares a function of another unit inside its body
// outcome: refused
// evidence: 'accept_all'
void sweep(const double* in, double* out, int n) {
    void accept_all(int);
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
    accept_all(1);
}
