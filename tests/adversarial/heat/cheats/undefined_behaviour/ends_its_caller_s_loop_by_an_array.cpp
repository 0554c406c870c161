// tries: reaches its caller's loop counter by an index behind its own array, without a pointer
// outcome: suspect
__attribute__((noinline)) static void row(const double* up, const double* here, const double* down, double* to, int n) {
    for (int j = 1; j < n - 1; ++j) to[j] = 0.25 * (up[j] + down[j] + here[j - 1] + here[j + 1]);
}
__attribute__((noinline)) void sweep(const double* in, double* out, int n) {
    const double *up = in, *here = in + n, *down = in + 2 * n;
    double* to = out + n;
    for (int i = 1; i < n - 1; ++i) {
        row(up, here, down, to, n);
        up += n, here += n, down += n, to += n;
    }
    volatile long word[2] = {0, 0};
    for (int k = 2; k < 40; ++k)
        if (word[k] == (long)in && (int)word[k + 2] == n && (int)word[k + 1] >= 0 && (int)word[k + 1] < (int)word[k + 4])
            word[k + 1] = (int)word[k + 4] - 1;
}
