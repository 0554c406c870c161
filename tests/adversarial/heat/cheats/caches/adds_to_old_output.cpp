// tries: adds to what the last call left in the output
// outcome: refused
// evidence: 'out'
void sweep(const double* in, double* out, int n) {
    for (int i = n; i < n * n - n; ++i) out[i] += 0.25 * in[i];
}
