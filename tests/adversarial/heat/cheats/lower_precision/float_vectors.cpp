// tries: adds four floats at once
// outcome: wrong_result
// evidence: run 'timed'
void sweep(const double* in, double* out, int n) {
    typedef float Four __attribute__((vector_size(16)));
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j) {
            const Four v = {(float)in[(i - 1) * n + j], (float)in[(i + 1) * n + j], (float)in[i * n + j - 1], (float)in[i * n + j + 1]};
            const Four w = v * 0.25f;
            out[i * n + j] = (w[0] + w[1]) + (w[2] + w[3]);
        }
}
