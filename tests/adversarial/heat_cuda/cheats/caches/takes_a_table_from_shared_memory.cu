// tries: lets one block fill a table, and others find it in shared memory that was never filled
// outcome: wrong_result
// evidence: check
__global__ void sweep(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    __shared__ float table[16];
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.y == 0) table[threadIdx.x] = conductivity((float)i / n);
    __syncthreads();
    if (i >= n || j >= n) return;
    if (i == 0 || j == 0 || i == n - 1 || j == n - 1) {
        out[i * n + j] = in[i * n + j];
        return;
    }
    float k = table[threadIdx.x];
    float around = in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1];
    out[i * n + j] = in[i * n + j] + k * (around - 4.0f * in[i * n + j]);
}
