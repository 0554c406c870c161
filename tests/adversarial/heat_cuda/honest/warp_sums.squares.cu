// does: sums by shuffles
__device__ __forceinline__ double warp_sum(double sum)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    return sum;
}

__global__ void squares(const float* __restrict__ field, double* __restrict__ sums, int count)
{
    __shared__ double part[8];
    double sum = 0.0;
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += gridDim.x * blockDim.x) {
        const double value = __ldg(field + k);
        sum = fma(value, value, sum);
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = warp_sum(threadIdx.x < 8 ? part[threadIdx.x] : 0.0);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
