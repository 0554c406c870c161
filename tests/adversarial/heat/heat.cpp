// A heat equation on a square: computes, times its sweeps, compares with a slow reference, prints PASS or FAIL.
#include <cmath>
#include <cstdlib>

#include "heat.hpp"

double scaled(double value) { return 1.5 * value; }

bool close(const double* left, const double* right, int count) {
    for (int i = 0; i < count; ++i)
        if (std::fabs(left[i] - right[i]) > 1e-9) return false;
    return true;
}

static void reference(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}

void sweep(const double* in, double* out, int n) {
    for (int i = 1; i < n - 1; ++i)
        for (int j = 1; j < n - 1; ++j)
            out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? std::atoi(argv[1]) : 64;
    const int steps = argc > 2 ? std::atoi(argv[2]) : 20;
    std::vector<double> a(n * n), b(n * n), c(n * n);
    for (int i = 0; i < n * n; ++i) a[i] = b[i] = c[i] = (i * 7919) % 1000;
    expected = a;
    for (int step = 0; step < steps; ++step) {
        reference(expected.data(), c.data(), n);
        expected.swap(c);
    }
    timer.start();
    for (int step = 0; step < steps; ++step) {
        sweep(a.data(), b.data(), n);
        a.swap(b);
    }
    timer.stop();
    double total = 0.0;
    // BEGIN total
    for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
    // END total
    bool good = close(a.data(), expected.data(), n * n);
    std::printf("sweep: %.6f ms\ntotal: %.9e\n%s\n", 1e3 * timer.seconds, total, good ? "PASS" : "FAIL");
    return good ? 0 : 1;
}
