// tries: copies the rows into float buffers first
// outcome: wrong_result
// evidence: run 'timed'
void sweep(const double* in, double* out, int n) {
    std::vector<float> rows(n * n);
    float* row = rows.data();
    for (int i = 0; i < n * n; ++i) row[i] = (float)in[i];
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25f * (row[(i - 1) * n + j] + row[(i + 1) * n + j] + row[i * n + j - 1] + row[i * n + j + 1]);
}
