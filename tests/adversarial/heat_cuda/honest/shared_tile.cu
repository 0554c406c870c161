// does: reads neighbours from a tile in shared memory
constexpr int kSide = 16;

__global__ void sweep(const float* in, float* out, int n)
{
    __shared__ float tile[kSide + 2][kSide + 3];
    const int i = blockIdx.x * kSide + threadIdx.x, j = blockIdx.y * kSide + threadIdx.y;
    for (int k = threadIdx.y * kSide + threadIdx.x; k < (kSide + 2) * (kSide + 2); k += kSide * kSide) {
        const int y = blockIdx.x * kSide + k / (kSide + 2) - 1, x = blockIdx.y * kSide + k % (kSide + 2) - 1;
        tile[k / (kSide + 2)][k % (kSide + 2)] = (y >= 0 && y < n && x >= 0 && x < n) ? in[y * n + x] : 0.0f;
    }
    __syncthreads();
    const int y = threadIdx.x + 1, x = threadIdx.y + 1;
    if (i >= n || j >= n) return;
    float value = tile[y][x];
    if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
        value += conductivity((float)i / n) * (tile[y - 1][x] + tile[y + 1][x] + tile[y][x - 1] + tile[y][x + 1] - 4.0f * value);
    out[i * n + j] = value;
}
