// ==== original
__global__ void spmv(const int* rows, const int* columns, const float* values, const float* x, float* y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        float sum = 0;
        for (int k = rows[row]; k < rows[row + 1]; ++k) sum += values[k] * x[columns[k]];
        y[row] = sum;
    }
}
// ==== a warp for each row
enum : int { kWarp = 32 };
typedef unsigned lanes_t;
__global__ void spmv(const int* __restrict__ rows, const int* __restrict__ columns, const float* __restrict__ values,
                     const float* __restrict__ x, float* __restrict__ y, int n) {
    const lanes_t everyone = 0xffffffffu;
    for (int row = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp; row < n; row += gridDim.x * blockDim.x / kWarp) {
        const int begin = __ldg(rows + row), end = __ldg(rows + row + 1);
        float sum = 0.f;
        for (int k = begin + (threadIdx.x % kWarp); k < end; k += kWarp) sum = __fmaf_rn(values[k], __ldg(x + columns[k]), sum);
        for (int d = kWarp / 2; d; d >>= 1) sum += __shfl_down_sync(everyone, sum, d);
        if (threadIdx.x % kWarp == 0) y[row] = sum;
    }
}
// ==== unrolled by hand with a jump
__global__ void spmv(const int* rows, const int* columns, const float* values, const float* x, float* y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) goto done;
    {
        int k = rows[row];
        const int last = rows[row + 1];
        float a = 0, b = 0;
        while (k + 2 <= last) {
            a += values[k] * x[columns[k]];
            b += values[k + 1] * x[columns[k + 1]];
            k += 2;
        }
        if (k < last) a += values[k] * x[columns[k]];
        y[row] = a + b;
    }
done:
    return;
}
