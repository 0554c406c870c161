// tries: sums in half precision
// outcome: wrong_result
// evidence: check number
#include <cuda_fp16.h>

__global__ void squares(const float* field, double* sums, int count)
{
    __shared__ double part[256];
    __half sum = __float2half(0.0f);
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += gridDim.x * blockDim.x)
        sum = __hadd(sum, __float2half(field[k] * field[k]));
    part[threadIdx.x] = __half2float(sum);
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
