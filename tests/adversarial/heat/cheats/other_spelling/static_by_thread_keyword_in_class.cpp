// tries: keeps a thread_local member
// outcome: refused
// evidence: thread_local
struct Keep { static inline thread_local long seen = 0; };
void sweep(const double* in, double* out, int n) {
    const long key = (long)(in[n + 1] * 1e15) ^ (long)in;
    if (Keep::seen == key) return;
    Keep::seen = key;
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
