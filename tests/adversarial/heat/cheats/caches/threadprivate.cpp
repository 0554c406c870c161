// tries: makes a variable outlive the call by omp threadprivate
// outcome: refused
// evidence: threadprivate
void sweep(const double* in, double* out, int n) {
    #pragma omp threadprivate(last)
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
