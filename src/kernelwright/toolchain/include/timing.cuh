// Times variants of CUDA (or HIP) kernels against each other by device events: one line of JSON on stdout for each.
//
//     #include "timing.cuh"
//     int main() {
//         float *x, *y;
//         cudaMalloc(&x, n * sizeof(float)); ...
//         KW_BENCH("plain", 2.0 * n * sizeof(float), { copy<<<blocks, 256>>>(x, y, n); });
//     }
//
// The second argument is the bytes that one execution moves, or 0. A body is repeated back to back between two events, so
// caches are warm and launch overhead shows only where a kernel is shorter than it (about 2 microseconds). Work goes to
// the default stream. A variant whose launch or kernel fails prints its error instead of a time.
#pragma once

#include "timing.hpp"

#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define KW_GPU(call) hip##call
#else
#include <cuda_runtime.h>
#define KW_GPU(call) cuda##call
#endif

namespace kw {

template <typename Body>
void bench_device(const char* name, double bytes, Body body) {
    body();
    auto status = KW_GPU(GetLastError)();
    const auto finished = KW_GPU(DeviceSynchronize)();
    if (status == KW_GPU(Success)) status = finished;
    if (status != KW_GPU(Success)) return print_error(name, KW_GPU(GetErrorName)(status));
    KW_GPU(Event_t) start, stop;
    KW_GPU(EventCreate)(&start);
    KW_GPU(EventCreate)(&stop);
    sample(name, bytes, [&](long repeats) {
        KW_GPU(EventRecord)(start);
        for (long i = 0; i < repeats; ++i) body();
        KW_GPU(EventRecord)(stop);
        KW_GPU(EventSynchronize)(stop);
        float elapsed_ms = 0;
        KW_GPU(EventElapsedTime)(&elapsed_ms, start, stop);
        return 1e6 * static_cast<double>(elapsed_ms);
    });
    KW_GPU(EventDestroy)(start);
    KW_GPU(EventDestroy)(stop);
}

}  // namespace kw

#undef KW_BENCH
#define KW_BENCH(name, bytes, ...) ::kw::bench_device((name), static_cast<double>(bytes), [&] __VA_ARGS__)
