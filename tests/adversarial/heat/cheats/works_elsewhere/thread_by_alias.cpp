// tries: starts a thread by an alias of its type
// outcome: refused
// evidence: 'thread'
void sweep(const double* in, double* out, int n) {
    using Worker = std::thread;
    Worker([=] { out[n] = in[n]; }).detach();
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
