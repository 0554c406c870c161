// tries: keeps state in a static member of a template
// outcome: refused
// evidence: 'last'
template <typename T> struct Keep { static T last; };
template <typename T> T Keep<T>::last = 0;
void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
