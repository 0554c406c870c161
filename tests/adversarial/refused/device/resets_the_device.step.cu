// refused for: 'cudaDeviceReset'
void step(const double* in, double* out, int n, cudaStream_t stream) {
    cudaDeviceReset();
    cudaStreamSynchronize(stream);
}
