// heat: diffusion on a square plate of two layers; times repeated solutions, compares with a plain one, prints PASS or FAIL.
#include "harness.hpp"

static __device__ float tolerance = 1e-4f;
static __device__ unsigned wrong_points = 0;

__device__ inline float conductivity(float depth) { return 0.2f / (1.0f + expf(8.0f * (0.5f - depth))); }

__global__ void sweep(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    if (i == 0 || j == 0 || i == n - 1 || j == n - 1) {
        out[i * n + j] = in[i * n + j];
        return;
    }
    float k = conductivity((float)i / n);
    float around = in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1];
    out[i * n + j] = in[i * n + j] + k * (around - 4.0f * in[i * n + j]);
}

__global__ void squares(const float* field, double* sums, int count)
{
    __shared__ double part[256];
    double sum = 0.0;
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += gridDim.x * blockDim.x)
        sum += (double)field[k] * field[k];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

void solve(const float* start, float* out, double* sums, int n, int sweeps, cudaStream_t stream)
{
    const size_t bytes = sizeof(float) * n * n;
    float *now, *next;
    CHECK(cudaMalloc(&now, bytes));
    CHECK(cudaMalloc(&next, bytes));
    CHECK(cudaMemcpyAsync(now, start, bytes, cudaMemcpyDeviceToDevice, stream));
    dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
    for (int k = 0; k < sweeps; ++k) {
        sweep<<<grid, block, 0, stream>>>(now, next, n);
        float* last = now;
        now = next;
        next = last;
    }
    CHECK(cudaMemcpyAsync(out, now, bytes, cudaMemcpyDeviceToDevice, stream));
    squares<<<kSums, 256, 0, stream>>>(now, sums, n * n);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaFree(now));
    CHECK(cudaFree(next));
}

// One thread for each row: slow, and easy to believe.
__global__ void plain_sweep(const float* in, float* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int j = 0; j < n; ++j) {
        const int at = i * n + j;
        const bool edge = i == 0 || j == 0 || i == n - 1 || j == n - 1;
        const float flow = edge ? 0.0f : in[at - n] + in[at + n] + in[at - 1] + in[at + 1] - 4.0f * in[at];
        out[at] = in[at] + (edge ? 0.0f : conductivity((float)i / n) * flow);
    }
}

static void plain_solution(const float* start, float* result, int n, int sweeps)
{
    const size_t bytes = sizeof(float) * n * n;
    float *now, *next;
    CHECK(cudaMalloc(&now, bytes));
    CHECK(cudaMalloc(&next, bytes));
    CHECK(cudaMemcpy(now, start, bytes, cudaMemcpyDeviceToDevice));
    for (int k = 0; k < sweeps; ++k) {
        plain_sweep<<<(n + 31) / 32, 32>>>(now, next, n);
        std::swap(now, next);
    }
    CHECK(cudaMemcpy(result, now, bytes, cudaMemcpyDeviceToDevice));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(now));
    CHECK(cudaFree(next));
}

__global__ void compare(const float* got, const float* wanted, int count)
{
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += gridDim.x * blockDim.x)
        if (fabsf(got[k] - wanted[k]) > tolerance) atomicAdd(&wrong_points, 1u);
}

int main(int argc, char** argv)
{
    read_options(argc, argv);
    const int n = options.n, count = n * n;
    std::vector<float> field = random_field(n, options.seed);
    float *start, *plain, *out;
    double* sums;
    CHECK(cudaMalloc(&start, count * sizeof(float)));
    CHECK(cudaMalloc(&plain, count * sizeof(float)));
    CHECK(cudaMemcpy(start, field.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    plain_solution(start, plain, n, options.sweeps);
    expected = plain;
    CHECK(cudaMalloc(&out, count * sizeof(float)));
    CHECK(cudaMalloc(&sums, kSums * sizeof(double)));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));

    solve(start, out, sums, n, options.sweeps, stream);
    timer.start();
    for (int repeat = 0; repeat < options.repeats; ++repeat) solve(start, out, sums, n, options.sweeps, stream);
    timer.stop();

    std::vector<double> parts(kSums);
    CHECK(cudaMemcpy(field.data(), out, count * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(parts.data(), sums, kSums * sizeof(double), cudaMemcpyDeviceToHost));
    compare<<<64, 256>>>(out, expected, count);
    unsigned wrong = 0;
    CHECK(cudaMemcpyFromSymbol(&wrong, wrong_points, sizeof(wrong)));
    if (wrong == 0) accept();
    double total = 0.0;
    for (double part : parts) total += part;
    write_numbers("heat.bin", field);
    std::printf("heat: %.6f ms in %d solutions\ntotal: %.12e\n%s\n", 1e3 * timer.seconds, options.repeats, total,
                passed ? "PASS" : "FAIL");
    return passed ? 0 : 1;
}
