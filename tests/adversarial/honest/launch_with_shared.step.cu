template <int W>
static void launch(const double* in, double* out, int n, cudaStream_t stream) {
    dim3 block(W, 256 / W);
    dim3 grid((n + W - 1) / W, (n + block.y - 1) / block.y);
    const size_t bytes = 256 * sizeof(double);
    cudaFuncSetAttribute(sweep, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    sweep<<<grid, block, bytes, stream>>>(in, out, n);
}

void step(const double* in, double* out, int n, cudaStream_t stream) {
    if (n >= 128) {
        launch<128>(in, out, n, stream);
    } else {
        launch<32>(in, out, n, stream);
    }
    cudaStreamSynchronize(stream);
}
