// tries: initialises before others by init_priority
// outcome: refused
// evidence: 'init_priority'
struct Early { Early() {} };
__attribute__((init_priority(101))) Early early;
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
