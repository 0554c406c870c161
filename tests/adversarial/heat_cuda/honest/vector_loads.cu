// does: takes two columns at a time where rows are aligned
__device__ __forceinline__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }

__global__ void sweep(const float* in, float* out, int n)
{
    const int i = blockIdx.y * blockDim.y + threadIdx.y;
    const int j = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n || j >= n) return;
    const float k = conductivity((float)i / n);
    if ((n & 1) == 0 && i > 0 && i < n - 1 && j > 0 && j + 2 < n) {
        const float2 up = *reinterpret_cast<const float2*>(&in[(i - 1) * n + j]);
        const float2 down = __ldg((const float2*)(in + (i + 1) * n + j));
        const float2 here = *(const float2*)&in[i * n + j];
        const float2 sum = up + down + make_float2(in[i * n + j - 1] + here.y, here.x + in[i * n + j + 2]);
        reinterpret_cast<float2*>(out + i * n + j)[0] = make_float2(here.x + k * (sum.x - 4.0f * here.x), here.y + k * (sum.y - 4.0f * here.y));
        return;
    }
#pragma unroll
    for (int s = 0; s < 2; ++s) {
        if (j + s >= n) break;
        float value = in[i * n + j + s];
        if (i > 0 && j + s > 0 && i < n - 1 && j + s < n - 1)
            value += k * (in[(i - 1) * n + j + s] + in[(i + 1) * n + j + s] + in[i * n + j + s - 1] + in[i * n + j + s + 1] - 4.0f * value);
        out[i * n + j + s] = value;
    }
}
