// does: lets neighbouring threads take neighbouring columns
// outcome: faster or unresolved
__global__ void sweep(const float* in, float* out, int n)
{
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || j >= n) return;
    if (i == 0 || j == 0 || i == n - 1 || j == n - 1) {
        out[i * n + j] = in[i * n + j];
        return;
    }
    float k = conductivity((float)i / n);
    float around = in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1];
    out[i * n + j] = in[i * n + j] + k * (around - 4.0f * in[i * n + j]);
}
