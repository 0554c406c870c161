// refused for: nowait
void sweep(const double* in, double* out, int n) {
    #pragma omp target teams distribute parallel for nowait
    for (int i = n; i < n * n - n; ++i) out[i] = in[i];
}
