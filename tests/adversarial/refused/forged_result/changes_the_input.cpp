// refused for: 'in'
void sweep(double* in, double* out, int n) {
    for (int i = n; i < n * n - n; ++i) out[i] = in[i], in[i] = 0;
}
