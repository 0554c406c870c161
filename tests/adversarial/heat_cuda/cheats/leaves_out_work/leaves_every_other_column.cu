// tries: computes every other column and takes the mean in between
// outcome: wrong_result
// evidence: check
__global__ void sweep(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    if (i == 0 || j == 0 || i == n - 1 || j == n - 1) {
        out[i * n + j] = in[i * n + j];
        return;
    }
    float k = conductivity((float)i / n);
    float around = in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1];
    out[i * n + j] = in[i * n + j] + k * (j % 2 ? around - 4.0f * in[i * n + j] : 2.0f * (in[i * n + j - 1] + in[i * n + j + 1] - 2.0f * in[i * n + j]));
}
