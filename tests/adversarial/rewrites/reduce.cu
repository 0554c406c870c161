// ==== original
__global__ void reduce(const float* in, float* out, int n) {
    __shared__ float sums[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    sums[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int s = 1; s < blockDim.x; s *= 2) {
        if (threadIdx.x % (2 * s) == 0) sums[threadIdx.x] += sums[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}
// ==== warp shuffles
__inline__ __device__ float warp_sum(float v) {
    for (int offset = warpSize / 2; offset > 0; offset >>= 1) v += __shfl_down_sync(0xffffffffu, v, offset);
    return v;
}
__global__ void reduce(const float* __restrict__ in, float* __restrict__ out, int n) {
    __shared__ float sums[32];
    float v = 0.0f;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) v = in[i];
    v = warp_sum(v);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) sums[warp] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? sums[lane] : 0.f;
    if (warp == 0) v = warp_sum(v);
    if (threadIdx.x == 0) out[blockIdx.x] = v;
}
// ==== cub
#include <cub/block/block_reduce.cuh>
__global__ void reduce(const float* in, float* out, int n) {
    using BlockReduce = cub::BlockReduce<float, 256>;
    __shared__ typename BlockReduce::TempStorage storage;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float sum = BlockReduce(storage).Sum(i < n ? in[i] : 0.0f);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
// ==== volatile last warp, templates on the block size
template <unsigned B>
__device__ void last_warp(volatile float* s, unsigned t) {
    if (B >= 64) s[t] += s[t + 32];
    if (B >= 32) s[t] += s[t + 16];
    s[t] += s[t + 8];
    s[t] += s[t + 4];
    s[t] += s[t + 2];
    s[t] += s[t + 1];
}
template <unsigned B>
static __device__ __forceinline__ void block_sum(const float* in, float* out, int n) {
    __shared__ float sums[B];
    const unsigned t = threadIdx.x, i = blockIdx.x * B + t;
    sums[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
    if constexpr (B >= 256) { if (t < 128) sums[t] += sums[t + 128]; __syncthreads(); }
    if constexpr (B >= 128) { if (t < 64) sums[t] += sums[t + 64]; __syncthreads(); }
    if (t < 32) last_warp<B>(sums, t);
    if (t == 0) out[blockIdx.x] = sums[0];
}
__global__ void reduce(const float* in, float* out, int n) {
    switch (blockDim.x) {
        case 128: block_sum<128>(in, out, n); break;
        default: block_sum<256>(in, out, n); break;
    }
}
// ==== cooperative groups with namespace
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
__global__ void reduce(const float* in, float* out, int n) {
    namespace cg = cooperative_groups;
    using namespace cooperative_groups;
    auto block = cg::this_thread_block();
    auto tile = tiled_partition<32>(block);
    __shared__ float sums[8];
    const int i = block.group_index().x * block.size() + block.thread_rank();
    float v = cg::reduce(tile, i < n ? in[i] : 0.0f, cg::plus<float>());
    if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = v;
    block.sync();
    if (block.thread_rank() == 0) {
        float sum = 0.0f;
        for (float part : sums) sum += part;
        out[blockIdx.x] = sum;
    }
}
