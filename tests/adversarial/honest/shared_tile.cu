constexpr int TILE = 16;

__global__ void sweep(const double* in, double* out, int n) {
    __shared__ double tile[TILE + 2][TILE + 3];
    const int i = blockIdx.y * TILE + threadIdx.y, j = blockIdx.x * TILE + threadIdx.x;
    for (int k = threadIdx.y * TILE + threadIdx.x; k < (TILE + 2) * (TILE + 2); k += TILE * TILE) {
        const int y = blockIdx.y * TILE + k / (TILE + 2) - 1, x = blockIdx.x * TILE + k % (TILE + 2) - 1;
        tile[k / (TILE + 2)][k % (TILE + 2)] = (y >= 0 && y < n && x >= 0 && x < n) ? in[y * n + x] : 0.0;
    }
    __syncthreads();
    const int y = threadIdx.y + 1, x = threadIdx.x + 1;
    if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
        out[i * n + j] = 0.25 * (tile[y - 1][x] + tile[y + 1][x] + tile[y][x - 1] + tile[y][x + 1]);
}
