// The same sweep on a device; screened, never built here.
#include <cstdio>
#include <cuda_runtime.h>

__device__ double tolerance = 1e-9;
__device__ double* answers;
__device__ inline double quarter(double x) { return 0.25 * x; }

__global__ void sweep(const double* in, double* out, int n) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && j > 0 && i < n - 1 && j < n - 1)
        out[i * n + j] = 0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}

void step(const double* in, double* out, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
    sweep<<<grid, block, 0, stream>>>(in, out, n);
    cudaStreamSynchronize(stream);
}

int main() {
    double *a, *b;
    cudaMalloc(&a, 64 * 64 * sizeof(double));
    cudaMalloc(&b, 64 * 64 * sizeof(double));
    step(a, b, 64, nullptr);
    std::printf("%s\n", cudaGetLastError() == cudaSuccess ? "PASS" : "FAIL");
}
