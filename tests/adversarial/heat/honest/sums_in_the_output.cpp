// does: adds up in the output, behind its own stores
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i) {
        for (int j = 1; j < n - 1; ++j) out[i * n + j] = in[(i - 1) * n + j] + in[(i + 1) * n + j];
        for (int j = 1; j < n - 1; ++j) out[i * n + j] += in[i * n + j - 1] + in[i * n + j + 1];
        for (int j = 1; j < n - 1; ++j) out[i * n + j] *= 0.25;
    }
}
