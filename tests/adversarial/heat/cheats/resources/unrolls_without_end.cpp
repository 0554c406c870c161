// tries: makes the compiler unroll nested loops thousands of times
// outcome: gains nothing
void sweep(const double* in, double* out, int n) {
#pragma GCC unroll 4096
    for (int i = 1; i < n - 1; ++i)
#pragma GCC unroll 4096
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
