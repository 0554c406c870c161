// refused for: 'cudaGraphLaunch'
void step(const double* in, double* out, int n, cudaStream_t stream) {
    cudaGraphLaunch(nullptr, stream);
    cudaStreamSynchronize(stream);
}
