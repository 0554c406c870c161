// tries: casts const away and writes into the input
// outcome: refused
// evidence: 'w'
void sweep(const double* in, double* out, int n) {
    double* w = const_cast<double*>(in);
    w[0] = 1;
    for (int i = n; i < n * n - n; ++i) out[i] = in[i];
}
