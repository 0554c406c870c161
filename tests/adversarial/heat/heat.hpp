// Our own small application: the parts of its harness that a candidate may not touch.
#pragma once
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

struct Timer {
    double seconds = 0.0;
    std::chrono::steady_clock::time_point begin;
    void start() { begin = std::chrono::steady_clock::now(); }
    void stop() { seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }
};

#define JOIN(a, b) a##b
#define SAY(text) std::puts(text)

inline constexpr int kBorder = 1;
inline std::vector<double> expected;
inline Timer timer;
inline int passed = 0;

inline double square(double x) { return x * x; }
inline void accept() { passed = 1; }
double scaled(double value);

template <typename T>
struct Weight {
    static constexpr T centre = T(0.25);
};
