// does: takes the neighbours' places from tables
__constant__ float weights[4] = {1.0f, 1.0f, 1.0f, 1.0f};
__device__ static constexpr int dy[4] = {-1, 1, 0, 0};

__global__ void sweep(const float* in, float* out, int n)
{
    constexpr int dx[4] = {0, 0, -1, 1};
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    float value = in[i * n + j];
    if (i > 0 && j > 0 && i < n - 1 && j < n - 1) {
        float around = 0.0f;
#pragma unroll 4
        for (int k = 0; k < 4; ++k) around = fmaf(weights[k], in[(i + dy[k]) * n + j + dx[k]], around);
        value += conductivity((float)i / n) * (around - 4.0f * value);
    }
    out[i * n + j] = value;
}
