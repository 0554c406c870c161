__global__ void sweep(const double* in, double* out, int n) {
    extern __shared__ __align__(16) double row[];
    const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    double* mine = row + threadIdx.y * blockDim.x;
    mine[threadIdx.x] = (i < n && j < n) ? in[i * n + j] : 0.0;
    __syncwarp();
    if (i > 0 && j > 0 && i < n - 1 && j < n - 1) {
        const double left = threadIdx.x ? mine[threadIdx.x - 1] : in[i * n + j - 1];
        const double right = threadIdx.x + 1 < blockDim.x ? mine[threadIdx.x + 1] : in[i * n + j + 1];
        out[i * n + j] = quarter(in[(i - 1) * n + j] + in[(i + 1) * n + j] + left + right);
    }
}
