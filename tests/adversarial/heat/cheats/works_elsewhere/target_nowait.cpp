// tries: starts an OpenMP target task that nobody waits for
// outcome: refused
// evidence: nowait
void sweep(const double* in, double* out, int n) {
    #pragma omp target teams distribute parallel for nowait
    for (int i = n; i < n * n - n; ++i) out[i] = in[i];
}
