// tries: calls the program's plain solution
// outcome: refused
// evidence: 'plain_solution'
static void plain_solution(const float* start, float* result, int n, int sweeps);

void solve(const float* start, float* out, double* sums, int n, int sweeps, cudaStream_t stream)
{
    const size_t bytes = sizeof(float) * n * n;
    float *now, *next;
    CHECK(cudaMalloc(&now, bytes));
    CHECK(cudaMalloc(&next, bytes));
    CHECK(cudaMemcpyAsync(now, start, bytes, cudaMemcpyDeviceToDevice, stream));
    dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
    plain_solution(start, now, n, sweeps);
    CHECK(cudaMemcpyAsync(out, now, bytes, cudaMemcpyDeviceToDevice, stream));
    squares<<<kSums, 256, 0, stream>>>(now, sums, n * n);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaFree(now));
    CHECK(cudaFree(next));
}
