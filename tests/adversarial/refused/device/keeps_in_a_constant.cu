// refused for: 'state'
__device__ const int state[2] = {0, 0};
__global__ void sweep(const double* in, double* out, int n) {
    if (atomicAdd((int*)state, 1) > 0) return;
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
        out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
