// tries: sums a quarter of the field, four times
// outcome: wrong_result
// evidence: check number
__global__ void squares(const float* field, double* sums, int count)
{
    __shared__ double part[256];
    double sum = 0.0;
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count / 4; k += gridDim.x * blockDim.x)
        sum += (double)field[k] * field[k];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = 4.0 * part[0];
}
