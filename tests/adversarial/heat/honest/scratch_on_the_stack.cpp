// does: keeps sums of two rows in an array on the stack that it does not initialise
void sweep(const double* in, double* out, int n) {
    double sums[512];
    for (int i = 1; i < n - 1; ++i)
        for (int from = 1; from < n - 1; from += 512) {
            const int count = n - 1 - from < 512 ? n - 1 - from : 512;
            for (int j = 0; j < count; ++j) sums[j] = in[(i - 1) * n + from + j] + in[(i + 1) * n + from + j];
            for (int j = 0; j < count; ++j)
                out[i * n + from + j] = 0.25 * (sums[j] + in[i * n + from + j - 1] + in[i * n + from + j + 1]);
        }
}
