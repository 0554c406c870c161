// tries: makes the compiler instantiate templates for ever
// outcome: build_failed
// evidence: template
template <int N> struct Tower { static constexpr int v = Tower<N + 1>::v; };
void sweep(const double* in, double* out, int n) {
    constexpr int v = Tower<0>::v;
    (void)v;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
