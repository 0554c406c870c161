// tries: launches the kernel on one point, and copies the input
// outcome: wrong_result
// evidence: check
void solve(const float* start, float* out, double* sums, int n, int sweeps, cudaStream_t stream)
{
    const size_t bytes = sizeof(float) * n * n;
    float *now, *next;
    CHECK(cudaMalloc(&now, bytes));
    CHECK(cudaMalloc(&next, bytes));
    CHECK(cudaMemcpyAsync(now, start, bytes, cudaMemcpyDeviceToDevice, stream));
    sweep<<<1, 1, 0, stream>>>(now, next, n);
    CHECK(cudaMemcpyAsync(out, now, bytes, cudaMemcpyDeviceToDevice, stream));
    squares<<<kSums, 256, 0, stream>>>(now, sums, n * n);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaFree(now));
    CHECK(cudaFree(next));
}
