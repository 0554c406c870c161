// ==== original
__global__ void soften(float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] / (1.0f + fabsf(in[i]));
}
// ==== four at once through a macro
__device__ float softened(float v) { return v / (1.0f + fabsf(v)); }
__global__ void soften(float* in, float* out, int n) {
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 3 < n) {
        float4 v = AS_FLOAT4(in[i]), w;
        w.x = softened(v.x);
        w.y = softened(v.y);
        w.z = softened(v.z);
        w.w = softened(v.w);
        AS_FLOAT4(out[i]) = w;
    } else {
        for (; i < n; ++i) out[i] = softened(in[i]);
    }
}
// ==== packed in registers and stored by a macro of a macro
__global__ void soften(float* in, float* out, int n) {
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    float from[4], to[4];
    if (i + 3 >= n) return;
    PACK(from[0]) = PACK(in[i]);
#pragma unroll
    for (int k = 0; k < 4; ++k) to[k] = from[k] / (1.0f + fabsf(from[k]));
    PACK(out[i]) = PACK(to[0]);
}
// ==== asynchronous copies by the file's macros
__global__ void soften(float* in, float* out, int n) {
    __shared__ float tile[1024];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&tile[t]));
    if (i < n) {
        COPY_ASYNC(to, &in[i], 4);
    }
    COPY_WAIT();
    __syncthreads();
    if (i < n) out[i] = tile[t] / (1.0f + fabsf(tile[t]));
}
// ==== sums a block with the file's helper, which has static shared memory
__global__ void soften(float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? in[i] : 0.0f;
    v = v + 0.0f * block_sum(v);
    if (i < n) out[i] = v / (1.0f + fabsf(v));
}
// ==== static shared memory of its own
__global__ void soften(float* in, float* out, int n) {
    static __shared__ float tile[1024];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    tile[t] = i < n ? in[i] : 0.0f;
    if (i < n) out[i] = tile[t] / (1.0f + fabsf(tile[t]));
}
// ==== waits for a group's copies
#include <cooperative_groups/memcpy_async.h>
__global__ void soften(float* in, float* out, int n) {
    __shared__ float tile[1024];
    const int t = threadIdx.x, first = blockIdx.x * blockDim.x, i = first + t;
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, tile, in + first, sizeof(float) * min(blockDim.x, n - first));
    cg::wait(block);
    if (i < n) out[i] = tile[t] / (1.0f + fabsf(tile[t]));
}
