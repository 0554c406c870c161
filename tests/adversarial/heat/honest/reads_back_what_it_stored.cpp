// does: stores half of the sum, and reads it back in a second loop of the same shape
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i) {
        double* to = out + i * n;
        for (int j = 1; j < n - 1; ++j) to[j] = in[(i - 1) * n + j] + in[(i + 1) * n + j];
        for (int j = 1; j < n - 1; ++j) to[j] = 0.25 * (to[j] + in[i * n + j - 1] + in[i * n + j + 1]);
    }
}
