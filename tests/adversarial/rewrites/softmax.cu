// ==== original
#define BLOCK 128
__global__ void softmax(const float* in, float* out, int cols) {
    const float* row = in + blockIdx.x * cols;
    if (threadIdx.x == 0) {
        float most = row[0], sum = 0.0f;
        for (int i = 1; i < cols; ++i) most = fmaxf(most, row[i]);
        for (int i = 0; i < cols; ++i) sum += expf(row[i] - most);
        for (int i = 0; i < cols; ++i) out[blockIdx.x * cols + i] = expf(row[i] - most) / sum;
    }
}
// ==== block reduction with a functor
#define BLOCK 128
struct Most { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };
struct Plus { __device__ float operator()(float a, float b) const { return a + b; } };
template <typename Op>
__device__ float all(float v, Op op, float* shared) {
    for (int mask = 16; mask > 0; mask /= 2) v = op(v, __shfl_xor_sync(~0u, v, mask));
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = shared[0];
    for (int w = 1; w < blockDim.x / 32; ++w) v = op(v, shared[w]);
    __syncthreads();
    return v;
}
__global__ void softmax(const float* in, float* out, int cols) {
    __shared__ float shared[32];
    const float* row = in + blockIdx.x * cols;
    float most = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) most = fmaxf(most, row[i]);
    most = all(most, Most{}, shared);
    for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += __expf(row[i] - most);
    sum = all(sum, Plus(), shared);
    const float scale = __fdividef(1.0f, sum);
    for (int i = threadIdx.x; i < cols; i += blockDim.x) out[blockIdx.x * cols + i] = __expf(row[i] - most) * scale;
}
// ==== keeps exponentials in the output
#define BLOCK 128
__global__ void softmax(const float* in, float* out, int cols) {
    const float* row = in + blockIdx.x * cols;
    float* to = out + blockIdx.x * cols;
    if (threadIdx.x == 0) {
        float most = row[0], sum = 0.0f;
        for (int i = 1; i < cols; ++i) most = fmaxf(most, row[i]);
        for (int i = 0; i < cols; ++i) {
            to[i] = expf(row[i] - most);
            sum += to[i];
        }
        for (int i = 0; i < cols; ++i) to[i] /= sum;
    }
}
