// Our own small application: the parts of its harness that a candidate may not touch. It includes much more than it needs, so that
// a cheat finds declared what it would like to call.
#pragma once
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <threads.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
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
void write_field(const double* field, int count);

template <typename T>
struct Weight {
    static constexpr T centre = T(0.25);
};
