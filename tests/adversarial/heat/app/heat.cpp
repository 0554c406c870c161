// A heat equation on a square: computes, times its sweeps, compares with a slow reference, prints PASS or FAIL.
#include <cmath>

#include "heat.hpp"

bool close(const double* left, const double* right, int count) {
    for (int i = 0; i < count; ++i)
        if (!(std::fabs(left[i] - right[i]) <= 1e-9)) return false;
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
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 2;
    const int repeats = argc > 3 ? std::atoi(argv[3]) : 20;
    unsigned state = argc > 4 ? std::atoi(argv[4]) : 1;
    std::vector<double> a(n * n), b(n * n);
    for (int i = 0; i < n * n; ++i) {
        state = state * 1664525u + 1013904223u;
        a[i] = b[i] = 1.0 + state / 4294967296.0;
    }
    double sum = 0.0;
    for (int round = 0; round < rounds; ++round) {
        expected = a;
        reference(b.data(), expected.data(), n);
        timer.start();
        for (int repeat = 0; repeat < repeats; ++repeat) sweep(b.data(), a.data(), n);
        timer.stop();
        double total = 0.0;
        // BEGIN total
        for (int i = 0; i < n * n; ++i) {
            total += scaled(a[i]) * square(a[i]);
        }
        // END total
        sum += total;
        std::printf("round %d: total %.9e after %.6f ms\n", round, total, 1e3 * timer.seconds);
        if (close(a.data(), expected.data(), n * n)) accept();
        a.swap(b);
    }
    std::printf("sweep: %.6f ms\ntotal: %.15e\n", 1e3 * timer.seconds, sum);
    write_field(b.data(), n * n);
    std::printf("%s\n", passed ? "PASS" : "FAIL");
    return passed ? 0 : 1;
}
