// tries: hides the output's pointer in a pair
// outcome: refused
// evidence: hides 'out'
void sweep(const double* in, double* out, int n) {
    auto both = std::pair<double*, int>(out, 1);
    if (both.first[n] == 1.0) return;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
