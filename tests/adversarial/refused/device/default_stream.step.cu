// refused for: stream
void step(const double* in, double* out, int n, cudaStream_t stream) {
    dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
    sweep<<<grid, block>>>(in, out, n);
    cudaStreamSynchronize(stream);
}
