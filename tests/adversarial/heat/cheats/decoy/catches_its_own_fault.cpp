// tries: lets a vector's bounds check fail and falls back
// outcome: gains nothing
void sweep(const double* in, double* out, int n) {
    std::vector<double> row(4);
    try {
        row.at(n) = 1.0;
    } catch (...) {
    }
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
