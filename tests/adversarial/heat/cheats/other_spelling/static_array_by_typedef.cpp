// tries: declares a static of a typedef's type
// outcome: refused
// evidence: 'seen'
void sweep(const double* in, double* out, int n) {
    const long key = (long)(in[n + 1] * 1e15) ^ (long)in;
    typedef long Cell[1];
    static Cell seen;
    if (seen[0] == key) return;
    seen[0] = key;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
