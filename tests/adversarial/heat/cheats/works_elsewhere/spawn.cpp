// tries: spawns a process
// outcome: refused
// evidence: 'posix_spawn'
void sweep(const double* in, double* out, int n) {
    posix_spawn(nullptr, "/bin/true", nullptr, nullptr, nullptr, nullptr);
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
