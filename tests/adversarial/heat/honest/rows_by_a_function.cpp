// does: asks a function for each row's pointer, and tests alignment and null
#include <cstdint>
static double* row_of(double* field, int n, int i) { return field + i * n; }
void sweep(const double* in, double* out, int n) {
    if (out == nullptr || (reinterpret_cast<uintptr_t>(out) & 7) != 0) return;
    for (int i = 1; i < n - 1; ++i) {
        double* to = row_of(out, n, i);
        const double* here = in + i * n;
        for (double *p = to + 1, *end = to + n - 1; p != end; ++p) {
            const long j = p - to;
            *p = 0.25 * (here[j - n] + here[j + n] + here[j - 1] + here[j + 1]);
        }
    }
}
