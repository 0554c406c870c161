// refused for: 'out'
void sweep(const double* in, double* out, int n) {
    for (int i = n; i < n * n - n; ++i) out[i] += 0.25 * in[i];
}
