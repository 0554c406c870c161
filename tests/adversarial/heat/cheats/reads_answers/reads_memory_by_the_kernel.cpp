// tries: reads other memory by process_vm_readv
// outcome: refused
// evidence: 'process_vm_readv'
void sweep(const double* in, double* out, int n) {
    process_vm_readv(1, nullptr, 0, nullptr, 0, 0);
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
