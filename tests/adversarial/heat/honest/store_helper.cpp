// does: stores through a helper by reference
static inline void put(double& to, double value) { to = value; }
static void four(double* __restrict to, const double* from, int n) {
    for (int k = 0; k < 4; ++k) put(to[k], 0.25 * (from[k - n] + from[k + n] + from[k - 1] + from[k + 1]));
}
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i) {
        int j = 1;
        for (; j + 4 < n; j += 4) four(&out[i * n + j], &in[i * n + j], n);
        for (; j < n - 1; ++j) {
            double* slot = out + (i * n + j);
            *slot++ = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
        }
    }
}
