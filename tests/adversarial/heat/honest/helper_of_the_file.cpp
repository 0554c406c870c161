// does: uses a constant and a helper of the program
void sweep(const double* in, double* out, int n) {
    const double half = std::sqrt(square(0.5));
    for (int i = kBorder; i < n - kBorder; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = half * half * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
