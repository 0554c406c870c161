// does: launches by a template that sets the shared memory first
template <int W>
static void launch(const float* in, float* out, int n, cudaStream_t stream)
{
    dim3 block(W, 256 / W);
    dim3 grid((n + W - 1) / W, (n + block.y - 1) / block.y);
    const size_t bytes = 256 * sizeof(float);
    CHECK(cudaFuncSetAttribute(sweep, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    sweep<<<grid, block, bytes, stream>>>(in, out, n);
}

void solve(const float* start, float* out, double* sums, int n, int sweeps, cudaStream_t stream)
{
    const size_t bytes = sizeof(float) * n * n;
    float *now, *next;
    CHECK(cudaMalloc(&now, bytes));
    CHECK(cudaMalloc(&next, bytes));
    CHECK(cudaMemcpyAsync(now, start, bytes, cudaMemcpyDeviceToDevice, stream));
    for (int k = 0; k < sweeps; ++k) {
        if (n >= 128) {
            launch<8>(now, next, n, stream);
        } else {
            launch<16>(now, next, n, stream);
        }
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
