#include "potential.cuh"

#include "cuda_check.cuh"

// BEGIN potential
__global__ void potential_kernel(Box box, int count, const float* x, const float* y, const float* z, const float* q,
                                 float* potential)
{
    int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point >= box.n * box.n * box.n) return;

    float px = (point % box.n) * box.spacing;
    float py = (point / box.n % box.n) * box.spacing;
    float pz = (point / (box.n * box.n)) * box.spacing;

    potential[point] = 0.0;
    for (int i = 0; i < count; ++i) {
        float dx = px - x[i];
        float dy = py - y[i];
        float dz = pz - z[i];
        float squared = pow(dx, 2) + pow(dy, 2) + pow(dz, 2) + 1e-4;
        float inverse = 1.0 / sqrt(squared);
        potential[point] += q[i] * inverse;
    }
}

void compute_potential(Box box, int count, const float* x, const float* y, const float* z, const float* q,
                       float* potential)
{
    const int threads = 32;
    const int blocks = (box.points() + threads - 1) / threads;
    potential_kernel<<<blocks, threads>>>(box, count, x, y, z, q, potential);
    CUDA_CHECK(cudaGetLastError());
}
// END potential
