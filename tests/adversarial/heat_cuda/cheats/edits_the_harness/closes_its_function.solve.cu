// tries: closes its own function and opens one that the harness would call
// outcome: refused or build_failed
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
}
int main()
{
