// does: strides over the columns
template <int Rows = 1>
__global__ void sweep_rows(const float* __restrict__ in, float* __restrict__ out, int n);

template <int Rows>
__global__ void sweep_rows(const float* __restrict__ in, float* __restrict__ out, int n)
{
    const int stride = gridDim.x * blockDim.x * Rows;
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < n * n; k += stride) out[k] = in[k];
}

__global__ void sweep(const float* in, float* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = blockIdx.y * blockDim.y + threadIdx.y; j < n; j += gridDim.y * blockDim.y) {
        if (i >= n) continue;
        float value = in[i * n + j];
        if (i > 0 && j > 0 && i < n - 1 && j < n - 1) {
            const float around = in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1];
            value += conductivity((float)i / n) * (around - 4.0f * value);
        }
        out[i * n + j] = value;
    }
}
