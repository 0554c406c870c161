// ==== original
__global__ void histogram(const unsigned char* data, unsigned* bins, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[data[i]], 1u);
}
// ==== privatised
__global__ void histogram(const unsigned char* __restrict__ data, unsigned* __restrict__ bins, size_t n) {
    __shared__ unsigned mine[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) mine[b] = 0;
    __syncthreads();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        atomicAdd(mine + data[i], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        if (unsigned count = mine[b]) atomicAdd(&bins[b], count);
}
// ==== four bytes at once
union Bytes { uchar4 v; unsigned word; };
__global__ void histogram(const unsigned char* data, unsigned* bins, size_t n) {
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    const size_t quads = n / 4;
    const uchar4* data4 = (const uchar4*)data;
    if (i < quads) {
        const uchar4 v = data4[i];
        atomicAdd(&bins[v.x], 1u), atomicAdd(&bins[v.y], 1u), atomicAdd(&bins[v.z], 1u), atomicAdd(&bins[v.w], 1u);
    }
    const size_t rest = quads * 4 + i;
    if (rest < n) atomicAdd(&bins[data[rest]], 1u);
}
// ==== aggregated by match
__global__ void histogram(const unsigned char* data, unsigned* bins, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int bin = data[i];
    const unsigned peers = __match_any_sync(__activemask(), bin);
    if ((threadIdx.x & 31) == __ffs(peers) - 1) atomicAdd(bins + bin, __popc(peers));
}
