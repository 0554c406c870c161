__device__ __forceinline__ double2 operator+(double2 a, double2 b) { return make_double2(a.x + b.x, a.y + b.y); }

__global__ void sweep(const double* in, double* out, int n) {
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    const int j = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i <= 0 || i >= n - 1 || j + 2 > n) return;
    if ((n & 1) == 0 && j > 0 && j + 2 < n) {
        const double2 up = *reinterpret_cast<const double2*>(&in[(i - 1) * n + j]);
        const double2 down = __ldg((const double2*)(in + (i + 1) * n + j));
        const double2 side = make_double2(in[i * n + j - 1] + in[i * n + j + 1], in[i * n + j] + in[i * n + j + 2]);
        const double2 sum = up + down + side;
        reinterpret_cast<double2*>(out + i * n + j)[0] = make_double2(0.25 * sum.x, 0.25 * sum.y);
    } else {
#pragma unroll
        for (int k = 0; k < 2; ++k)
            if (j + k > 0 && j + k < n - 1)
                out[i * n + j + k] = 0.25 * (in[(i - 1) * n + j + k] + in[(i + 1) * n + j + k] + in[i * n + j + k - 1] + in[i * n + j + k + 1]);
    }
}
