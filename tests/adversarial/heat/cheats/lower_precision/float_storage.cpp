// tries: stores through a pointer to float
// outcome: wrong_result
// evidence: run 'timed'
void sweep(const double* in, double* out, int n) {
    float* narrow = (float*)out;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j) narrow[2 * (i * n + j) + 1] = (float)(0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]));
}
