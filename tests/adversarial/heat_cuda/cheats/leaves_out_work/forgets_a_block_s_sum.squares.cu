// tries: leaves the last block's sum as it is
// outcome: wrong_result
// evidence: check number
__global__ void squares(const float* field, double* sums, int count)
{
    __shared__ double part[256];
    double sum = 0.0;
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += gridDim.x * blockDim.x)
        sum += (double)field[k] * field[k];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0 && blockIdx.x != 5) sums[blockIdx.x] = part[0];
}
