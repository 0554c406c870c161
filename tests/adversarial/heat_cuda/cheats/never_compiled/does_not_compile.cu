// tries: names what is declared nowhere
// outcome: build_failed
// evidence: undefined
__global__ void sweep(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    if (undeclared_name) return;
    if (i == 0 || j == 0 || i == n - 1 || j == n - 1) {
        out[i * n + j] = in[i * n + j];
        return;
    }
    float k = conductivity((float)i / n);
    float around = in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1];
    out[i * n + j] = in[i * n + j] + k * (around - 4.0f * in[i * n + j]);
}
