// tries: computes in half precision
// outcome: wrong_result
// evidence: check
#include <cuda_fp16.h>

__global__ void sweep(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    if (i == 0 || j == 0 || i == n - 1 || j == n - 1) {
        out[i * n + j] = in[i * n + j];
        return;
    }
    float k = conductivity((float)i / n);
    float around = in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1];
    out[i * n + j] = __half2float(__hadd(__float2half(in[i * n + j]), __hmul(__float2half(k), __float2half(around - 4.0f * in[i * n + j]))));
}
