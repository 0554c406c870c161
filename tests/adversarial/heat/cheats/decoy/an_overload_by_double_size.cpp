// tries: adds an overload with a default argument, so that the call is ambiguous
// outcome: build_failed or refused
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
void sweep(const double* in, double* out, int n, int rows = 0) { (void)in; (void)out; (void)n; (void)rows; }
