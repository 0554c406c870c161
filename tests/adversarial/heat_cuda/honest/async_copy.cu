// does: copies a tile to shared memory asynchronously
#include <cuda_pipeline.h>

template <int T>
__device__ void fill(float* tile, const float* in, int n, int y0, int x0)
{
    for (int k = threadIdx.y * blockDim.x + threadIdx.x; k < T * T; k += blockDim.x * blockDim.y) {
        const int y = y0 + k / T, x = x0 + k % T;
        if (y >= 0 && x >= 0 && y < n && x < n) __pipeline_memcpy_async(&tile[k], &in[y * n + x], sizeof(float));
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

__global__ void sweep(const float* in, float* out, int n)
{
    __shared__ float tile[18 * 18];
    fill<18>(tile, in, n, blockIdx.x * 16 - 1, blockIdx.y * 16 - 1);
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    const float* t = tile + (threadIdx.x + 1) * 18 + threadIdx.y + 1;
    float value = *t;
    if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
        value += conductivity((float)i / n) * (t[-18] + t[18] + t[-1] + t[1] - 4.0f * value);
    out[i * n + j] = value;
}
