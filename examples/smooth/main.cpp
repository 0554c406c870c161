// smooth: the percentiles of a noisy series after smoothing. Most of its time goes into sorting.

#include "percentiles.hpp"
#include "smooth.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

static std::vector<double> random_walk(int n, unsigned long seed)
{
    std::mt19937_64 random(seed);
    std::vector<double> series(n);
    double level = 100.0;
    for (double& value : series) {
        level += 0.01 * (static_cast<double>(random() >> 11) / 9007199254740992.0 - 0.5);
        value = level + static_cast<double>(random() >> 11) / 9007199254740992.0;
    }
    return series;
}

// The largest relative error among every 53rd of the smoothed values, summed anew from the far end.
static double largest_error(const std::vector<double>& series, const std::vector<double>& weights,
                            const std::vector<double>& smoothed)
{
    double largest = 0.0;
    for (std::size_t i = 0; i < smoothed.size(); i += 53) {
        long double sum = 0.0, total = 0.0;
        for (std::size_t k = weights.size(); k-- > 0;) {
            sum += static_cast<long double>(weights[k]) * series[i + k];
            total += weights[k];
        }
        const double error = std::fabs(static_cast<double>(smoothed[i] / (sum / total) - 1));
        if (!std::isfinite(error)) return error;
        largest = std::max(largest, error);
    }
    return largest;
}

int main(int argc, char** argv)
{
    int n = 1000000, width = 15;
    unsigned long seed = 1;
    for (int i = 1; i < argc; i += 2) {
        const char* value = i + 1 < argc ? argv[i + 1] : "";
        if (std::strcmp(argv[i], "--n") == 0) n = std::atoi(value);
        else if (std::strcmp(argv[i], "--width") == 0) width = std::atoi(value);
        else if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoul(value, nullptr, 10);
        else n = 0;
    }
    if (width < 1 || n < width) {
        std::fprintf(stderr, "usage: smooth [--n VALUES] [--width VALUES] [--seed SEED]\n");
        return 2;
    }

    const std::vector<double> series = random_walk(n, seed);
    std::vector<double> weights(width);
    for (int k = 0; k < width; ++k) weights[k] = std::exp(-0.5 * std::pow(4.0 * k / width - 2.0, 2));
    std::vector<double> smoothed(n - width + 1, -1.0);

    const auto start = std::chrono::steady_clock::now();
    smooth(series.data(), n, weights.data(), width, smoothed.data());
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;

    write_percentiles("percentiles.txt", smoothed);
    const bool pass = largest_error(series, weights, smoothed) <= 1e-12;
    std::printf("smoothing: %.3f ms\n%s\n", elapsed.count(), pass ? "PASS" : "FAIL");
    return pass ? 0 : 1;
}
