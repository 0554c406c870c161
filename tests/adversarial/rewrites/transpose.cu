// ==== original
__global__ void transpose(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) out[x * height + y] = in[y * width + x];
}
// ==== padded tile
static constexpr int kTile = 16;
__global__ void transpose(const float* __restrict__ in, float* __restrict__ out, const int width, const int height) {
    __shared__ float tile[kTile][kTile + 1];
    int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
    if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * kTile + threadIdx.x;
    y = blockIdx.x * kTile + threadIdx.y;
    if (x < height && y < width) out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
// ==== streaming store, struct of indices
struct Where { int x, y; };
__device__ __forceinline__ Where where() { return {int(blockIdx.x * blockDim.x + threadIdx.x), int(blockIdx.y * blockDim.y + threadIdx.y)}; }
__global__ void transpose(const float* in, float* out, int width, int height) {
    const auto [x, y] = where();
    if (x < width && y < height) __stcs(&out[x * height + y], __ldcs(&in[y * width + x]));
}
// ==== no early test
__global__ void transpose(const float* in, float* out, int width, int height) {
    const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned y0 = blockIdx.y * blockDim.y + threadIdx.y;
    float* column = out + static_cast<size_t>(x) * height;
    if (x >= width) return;
    for (unsigned y = y0; y < height; y += gridDim.y * blockDim.y) { column[y] = in[static_cast<size_t>(y) * width + x]; }
}
