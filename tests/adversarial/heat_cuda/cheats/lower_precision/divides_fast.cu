// tries: takes the conductivity by the fast exponential and division, within the tolerance
// outcome: allowed
// evidence: __fdividef
__global__ void sweep(const float* in, float* out, int n)
{
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || j >= n) return;
    if (i == 0 || j == 0 || i == n - 1 || j == n - 1) {
        out[i * n + j] = in[i * n + j];
        return;
    }
    float k = __fdividef(0.2f, 1.0f + __expf(8.0f * (0.5f - __fdividef(i, n))));
    float around = in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1];
    out[i * n + j] = in[i * n + j] + k * (around - 4.0f * in[i * n + j]);
}
