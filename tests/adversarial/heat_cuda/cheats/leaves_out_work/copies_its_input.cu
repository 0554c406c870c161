// tries: copies the input to the output
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
    out[i * n + j] = in[i * n + j];
}
