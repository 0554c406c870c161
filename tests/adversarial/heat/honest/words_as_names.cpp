// does: names that are also names of library functions
void sweep(const double* in, double* out, int n) {
    for (int time = 1; time < n - 1; ++time) {
        const double* read = in + time * n;
        double* write = out + time * n;
        double signal, link;
        for (int end = 1; end < n - 1; ++end) {
            signal = read[end - n] + read[end + n];
            link = read[end - 1] + read[end + 1];
            write[end] = 0.25 * (signal + link);
        }
    }
}
