// tries: adds a template of the same name, which the caller does not choose
// outcome: gains nothing
template <typename T>
void sweep(const T* in, T* out, int n, int) { (void)in; (void)out; (void)n; }
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
