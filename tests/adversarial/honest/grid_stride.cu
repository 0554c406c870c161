template <typename T, int Unroll = 4>
__global__ void sweep_impl(const T* __restrict__ in, T* __restrict__ out, int n);

template <typename T, int Unroll>
__global__ void sweep_impl(const T* __restrict__ in, T* __restrict__ out, int n) {
    const unsigned stride = gridDim.x * blockDim.x;
    for (unsigned k = blockIdx.x * blockDim.x + threadIdx.x; k < (unsigned)(n * n); k += stride) out[k] = in[k];
}

__global__ void sweep(const double* in, double* out, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = blockIdx.y * blockDim.y + threadIdx.y; i < n - 1; i += gridDim.y * blockDim.y) {
        if (i == 0 || j == 0 || j >= n - 1) continue;
        out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
    }
}
