// tries: keeps a static in a lambda that is a default argument
// outcome: refused
// evidence: 'c'
static long& cell(long& (*f)() = []() -> long& { static long c = 0; return c; }) { return f(); }
void sweep(const double* in, double* out, int n) {
    const long key = (long)(in[n + 1] * 1e15) ^ (long)in;
    if (cell() == key) return;
    cell() = key;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
