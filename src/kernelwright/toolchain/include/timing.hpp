// Times variants of a small piece of C++ code against each other: one line of JSON on stdout for each.
//
//     #include "timing.hpp"
//     int main() {
//         std::vector<float> a(1 << 20, 1.0f);
//         KW_BENCH("sum", a.size() * sizeof(float), {
//             float s = 0;
//             for (float x : a) s += x;
//             kw::keep(s);
//         });
//     }
//
// The second argument is the bytes that one execution moves, or 0. A body shorter than the clock can see is repeated in
// batches; caches and branch predictors are warm. What a body computes must reach kw::keep, or it is optimised away.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace kw {

constexpr double kBatchNs = 2e5;        // a batch lasts at least so long: a thousand ticks of a slow clock
constexpr double kBudgetNs = 4e8;       // for one variant, after which fewest samples are enough
constexpr double kLimitNs = 5e9;        // for one variant, even where a single execution is long
constexpr int kFewestSamples = 15;
constexpr int kMostSamples = 200;

// The compiler must assume that the value, and all memory, is read here.
template <typename T>
inline void keep(const T& value) {
    asm volatile("" : : "g"(&value) : "memory");
}

// The compiler must assume that all memory was written here.
inline void clobber() { asm volatile("" : : : "memory"); }

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

inline void print_name(const char* name) {
    std::printf("{\"kernelwright_variant\": \"");
    for (; *name; ++name) {
        if (*name == '"' || *name == '\\') std::putchar('\\');
        if (static_cast<unsigned char>(*name) >= 0x20) std::putchar(*name);
    }
    std::putchar('"');
}

inline void print_result(const char* name, double bytes, const std::vector<double>& samples_ns, long batch) {
    const double middle = median(samples_ns);
    std::vector<double> deviations;
    for (const double sample : samples_ns) deviations.push_back(std::fabs(sample - middle));
    print_name(name);
    std::printf(", \"median_ns\": %.4f, \"min_ns\": %.4f, \"mad_ns\": %.4f, \"n\": %zu, \"batch\": %ld, \"bytes\": %.0f}\n",
                middle, *std::min_element(samples_ns.begin(), samples_ns.end()), median(deviations), samples_ns.size(),
                batch, bytes);
    std::fflush(stdout);
}

inline void print_error(const char* name, const char* error) {
    print_name(name);
    std::printf(", \"error\": \"%s\"}\n", error);
    std::fflush(stdout);
}

// Samples until there are enough: `batch_ns(repeats)` runs the body so often and returns the nanoseconds it took.
template <typename BatchNs>
void sample(const char* name, double bytes, BatchNs batch_ns) {
    batch_ns(1);  // warm-up: pages, caches, lazy loading
    long batch = 1;
    double took = batch_ns(batch);
    while (took < kBatchNs && batch < (1L << 30)) {
        batch = took > kBatchNs / 64 ? static_cast<long>(batch * 1.2 * kBatchNs / took) + 1 : batch * 32;
        took = batch_ns(batch);
    }
    std::vector<double> samples;
    for (double spent = 0; static_cast<int>(samples.size()) < kMostSamples && spent < kLimitNs;) {
        if (spent > kBudgetNs && static_cast<int>(samples.size()) >= kFewestSamples) break;
        took = batch_ns(batch);
        spent += took;
        samples.push_back(took / static_cast<double>(batch));
    }
    print_result(name, bytes, samples, batch);
}

template <typename Body>
void bench(const char* name, double bytes, Body body) {
    sample(name, bytes, [&](long repeats) {
        const auto start = std::chrono::steady_clock::now();
        for (long i = 0; i < repeats; ++i) {
            body();
            clobber();
        }
        return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    });
}

}  // namespace kw

// A variadic macro, so that commas in the body need no care.
#define KW_BENCH(name, bytes, ...) ::kw::bench((name), static_cast<double>(bytes), [&] __VA_ARGS__)
