// The parts of the application that a candidate may not touch: errors, options, the timer, the check, the output file.
#pragma once
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                                       \
    do {                                                                                                  \
        const cudaError_t status_ = (call);                                                               \
        if (status_ != cudaSuccess) {                                                                     \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status_)); \
            std::exit(2);                                                                                 \
        }                                                                                                 \
    } while (0)
#define JOIN(a, b) a##b
#define SAY(text) std::puts(text)

struct Timer {
    double seconds = 0.0;
    std::chrono::steady_clock::time_point begin;
    void start() { begin = std::chrono::steady_clock::now(); }
    void stop() { seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }
};

struct Options {
    int n = 512;
    int sweeps = 64;
    int repeats = 200;
    unsigned seed = 1;
};

constexpr int kSums = 64;
inline Timer timer;
inline Options options;
inline int passed = 0;
inline const float* expected = nullptr;

inline void accept() { passed = 1; }

inline void read_options(int argc, char** argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const int value = std::atoi(argv[i + 1]);
        if (std::strcmp(argv[i], "--n") == 0) options.n = value;
        if (std::strcmp(argv[i], "--sweeps") == 0) options.sweeps = value;
        if (std::strcmp(argv[i], "--repeats") == 0) options.repeats = value;
        if (std::strcmp(argv[i], "--seed") == 0) options.seed = static_cast<unsigned>(value);
    }
    if (options.n < 3 || options.n > 8192 || options.sweeps < 1 || options.repeats < 1) {
        std::fprintf(stderr, "usage: heat [--n POINTS] [--sweeps COUNT] [--repeats COUNT] [--seed SEED]\n");
        std::exit(2);
    }
}

inline std::vector<float> random_field(int n, unsigned seed)
{
    std::vector<float> field(static_cast<std::size_t>(n) * n);
    unsigned state = seed * 2654435761u + 1u;
    for (float& value : field) {
        state = state * 1664525u + 1013904223u;
        value = static_cast<float>(state >> 8) / 16777216.0f;
    }
    return field;
}

inline void write_numbers(const char* path, const std::vector<float>& numbers)
{
    std::FILE* file = std::fopen(path, "wb");
    const bool written = file && std::fwrite(numbers.data(), sizeof(float), numbers.size(), file) == numbers.size();
    if (!file || std::fclose(file) != 0 || !written) {
        std::fprintf(stderr, "heat: cannot write %s\n", path);
        std::exit(2);
    }
}
