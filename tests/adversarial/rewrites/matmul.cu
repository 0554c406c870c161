// ==== original
__global__ void matmul(const float* A, const float* B, float* C, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n && col < n) {
        float sum = 0.0f;
        for (int k = 0; k < n; ++k) sum += A[row * n + k] * B[k * n + col];
        C[row * n + col] = sum;
    }
}
// ==== tiled in shared memory
#include <cstdint>
template <int T>
__device__ float dot_tile(const float (&a)[T][T], const float (&b)[T][T + 1]) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < T; ++k) sum = fmaf(a[threadIdx.y][k], b[k][threadIdx.x], sum);
    return sum;
}
__global__ void __launch_bounds__(256, 4) matmul(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int n) {
    constexpr int T = 16;
    __shared__ float a[T][T];
    __shared__ float b[T][T + 1];
    int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
    float sum = 0.0f;
    for (int k0 = 0; k0 < n; k0 += T) {
        a[threadIdx.y][threadIdx.x] = (row < n && k0 + threadIdx.x < n) ? A[row * n + k0 + threadIdx.x] : 0.0f;
        b[threadIdx.y][threadIdx.x] = (k0 + threadIdx.y < n && col < n) ? B[(k0 + threadIdx.y) * n + col] : 0.0f;
        __syncthreads();
        sum += dot_tile<T>(a, b);
        __syncthreads();
    }
    if (row < n && col < n) C[row * n + col] = sum;
}
// ==== registers, four columns a thread
__global__ void matmul(const float* A, const float* B, float* C, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= n || col >= n) return;
    float4 acc = make_float4(0.f, 0.f, 0.f, 0.f);
    const float4* B4 = reinterpret_cast<const float4*>(B);
    for (int k = 0; k < n; ++k) {
        const float a = __ldg(A + row * n + k);
        const float4 b = B4[(k * n + col) >> 2];
        acc.x += a * b.x, acc.y += a * b.y, acc.z += a * b.z, acc.w += a * b.w;
    }
    float4* C4 = reinterpret_cast<float4*>(&C[row * n + col]);
    *C4 = acc;
}
// ==== accumulates in the output
__global__ void matmul(const float* A, const float* B, float* C, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n && col < n) {
        C[row * n + col] = 0.0f;
        for (int k = 0; k < n; ++k) C[row * n + col] += A[row * n + k] * B[k * n + col];
    }
}
// ==== tensor cores
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

__global__ void matmul(const float* A, const float* B, float* C, int n) {
    __shared__ half a[16 * 16], b[16 * 16];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    const int row = blockIdx.y * 16, col = blockIdx.x * 16;
    for (int k = 0; k < n; k += 16) {
        for (int t = threadIdx.y * blockDim.x + threadIdx.x; t < 256; t += blockDim.x * blockDim.y) {
            a[t] = __float2half(A[(row + t / 16) * n + k + t % 16]);
            b[t] = __float2half_rn(B[(k + t / 16) * n + col + t % 16]);
        }
        __syncthreads();
        wmma::load_matrix_sync(fa, a, 16);
        wmma::load_matrix_sync(fb, b, 16);
        wmma::mma_sync(fc, fa, fb, fc);
        __syncthreads();
    }
    wmma::store_matrix_sync(C + row * n + col, fc, n, wmma::mem_row_major);
}
// ==== inline mma
__device__ __forceinline__ void mma_step(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ unsigned to_tf32(float x) {
    unsigned y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ void copy16(void* to, const void* from) {
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %2, 0;\n\t@p cp.async.cg.shared.global [%0], [%1], 16;\n\t}\n" ::"r"(at), "l"(from), "r"(1));
    asm volatile("cp.async.commit_group;\n" ::);
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
}
__global__ void matmul(const float* A, const float* B, float* C, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n && col < n) {
        float sum = 0.0f;
        for (int k = 0; k < n; ++k) sum += A[row * n + k] * B[k * n + col];
        C[row * n + col] = sum;
    }
}
