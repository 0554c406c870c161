// tries: holds a control character that rewrites what a terminal shows of it
// outcome: refused
// evidence: the control character '\x9b'
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + oops /* 2J */);
}
