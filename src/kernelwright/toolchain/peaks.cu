// The most bytes per second that this GPU moves, by size of the working set.
//
//     peaks BYTES...
//
// prints `bytes SIZE RATE`: first of all multiprocessors that each read their own cache (SIZE is what one of them reads), then
// for each size from the L2 cache or from memory; the best of reading, writing and copying (bytes read and bytes written both
// count) and of several repetitions. Passes over a set follow each other inside one launch, so no launch is timed.

#include <cstdio>
#include <cstdlib>

constexpr int THREADS = 1024, BLOCKS_EACH = 2, REPETITIONS = 6, OWN_BYTES = 32768;
constexpr int WARM_UPS = 20;    // a fifth of a second until an idle device's clocks are up
constexpr double ENOUGH = 8e9;  // bytes moved in one repetition, about

enum Kind { READ, WRITE, COPY, OWN, KINDS };

template <Kind KIND> __global__ void move(uint4 *data, size_t count, int passes, unsigned *never) {
    const size_t step = size_t(gridDim.x) * blockDim.x, first = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    uint4 seen = make_uint4(0, 0, 0, 0);
    for (int pass = 0; pass < passes; ++pass) {
        if (KIND == READ) {
            size_t i = first;
            for (; i + 3 * step < count; i += 4 * step) {
                const uint4 a = __ldcg(data + i), b = __ldcg(data + i + step);
                const uint4 c = __ldcg(data + i + 2 * step), d = __ldcg(data + i + 3 * step);
                seen.x |= a.x ^ b.x ^ c.x ^ d.x;
                seen.y |= a.y ^ b.y ^ c.y ^ d.y;
                seen.z |= a.z ^ b.z ^ c.z ^ d.z;
                seen.w |= a.w ^ b.w ^ c.w ^ d.w;
            }
            for (; i < count; i += step) seen.x |= __ldcg(data + i).x;
        } else if (KIND == WRITE) {
            for (size_t i = first; i < count; i += step) __stcg(data + i, make_uint4(pass, pass, pass, pass));
        } else if (KIND == COPY) {
            for (size_t i = first; i < count / 2; i += step) __stcg(data + count / 2 + i, __ldcg(data + i));
        } else {
            const uint4 *own = data + blockIdx.x * (OWN_BYTES / sizeof(uint4));
            for (int i = threadIdx.x; i < int(OWN_BYTES / sizeof(uint4)); i += blockDim.x) {
                const uint4 a = __ldca(own + i);
                seen.x += a.x ^ unsigned(pass), seen.y |= a.y, seen.z |= a.z, seen.w |= a.w;
            }
        }
    }
    if ((seen.x ^ seen.y ^ seen.z ^ seen.w) == 0x5eed5eedu) *never = 1;
}

static void require(cudaError_t said) {
    if (said == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(said));
    std::exit(1);
}

static double rate(Kind kind, int blocks, uint4 *data, size_t bytes, unsigned *never) {
    void (*const kernels[])(uint4 *, size_t, int, unsigned *) = {move<READ>, move<WRITE>, move<COPY>, move<OWN>};
    const int passes = ENOUGH / bytes < 1 ? 1 : int(ENOUGH / bytes);
    cudaEvent_t begin, end;
    require(cudaEventCreate(&begin));
    require(cudaEventCreate(&end));
    float least_ms = 1e30f;
    for (int repetition = 0; repetition < REPETITIONS; ++repetition) {
        require(cudaEventRecord(begin));
        kernels[kind]<<<blocks, THREADS>>>(data, bytes / sizeof(uint4), passes, never);
        require(cudaEventRecord(end));
        require(cudaEventSynchronize(end));
        float ms = 0;
        require(cudaEventElapsedTime(&ms, begin, end));
        if (repetition > 0 && ms < least_ms) least_ms = ms;
    }
    require(cudaEventDestroy(begin));
    require(cudaEventDestroy(end));
    return double(bytes) * passes / (least_ms * 1e-3);
}

int main(int count, char **words) {
    cudaDeviceProp device;
    require(cudaGetDeviceProperties(&device, 0));
    const int blocks = device.multiProcessorCount * BLOCKS_EACH;
    const size_t own = size_t(blocks) * OWN_BYTES;
    size_t largest = own;
    for (int i = 1; i < count; ++i) {
        const size_t size = std::strtoull(words[i], nullptr, 10);
        if (size > largest) largest = size;
    }
    uint4 *data;
    unsigned *never;
    require(cudaMalloc(&data, largest));
    require(cudaMalloc(&never, sizeof(unsigned)));
    require(cudaMemset(data, 0, largest));
    for (int i = 0; i < WARM_UPS; ++i) rate(READ, blocks, data, largest, never);
    std::printf("bytes %d %.6g\n", BLOCKS_EACH * OWN_BYTES, rate(OWN, blocks, data, own, never));
    for (int i = 1; i < count; ++i) {
        const size_t size = std::strtoull(words[i], nullptr, 10);
        double most = 0;
        for (Kind kind : {READ, WRITE, COPY}) {
            const double found = rate(kind, blocks, data, size, never);
            if (found > most) most = found;
        }
        std::printf("bytes %zu %.6g\n", size, most);
    }
}
