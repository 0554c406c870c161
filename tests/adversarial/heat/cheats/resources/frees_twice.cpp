// tries: frees memory twice
// outcome: crashed
// evidence: signal
void sweep(const double* in, double* out, int n) {
    char* volatile once = (char*)malloc(4096);
    free(once);
    free(once);
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
