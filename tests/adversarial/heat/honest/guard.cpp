// does: an early return for small fields, and values carried along the row
void sweep(const double* in, double* out, int n) {
    if (n < 3) return;
    if (__builtin_expect(n == 3, 0)) {
        out[4] = 0.25 * (in[1] + in[3] + in[5] + in[7]);
        return;
    }
    for (int i = 1; i < n - 1; ++i) {
        double left = in[i * n], here = in[i * n + 1];
        for (int j = 1; j < n - 1; ++j) {
            const double right = in[i * n + j + 1];
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + left + right);
            left = here;
            here = right;
        }
    }
}
