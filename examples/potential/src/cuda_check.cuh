#pragma once

#include <cstdio>
#include <cstdlib>

// Ends the program with the error's name where a CUDA call fails.
#define CUDA_CHECK(call)                                                                                        \
    do {                                                                                                        \
        const cudaError_t status = (call);                                                                      \
        if (status != cudaSuccess) {                                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));                \
            std::exit(2);                                                                                       \
        }                                                                                                       \
    } while (0)
