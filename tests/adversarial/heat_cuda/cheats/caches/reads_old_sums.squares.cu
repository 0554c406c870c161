// tries: reads its old sums and leaves them where they are
// outcome: refused
// evidence: 'sums'
__global__ void squares(const float* field, double* sums, int count)
{
    __shared__ double part[256];
    if (sums[blockIdx.x] != 0.0) return;
    double sum = 0.0;
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += gridDim.x * blockDim.x)
        sum += (double)field[k] * field[k];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
