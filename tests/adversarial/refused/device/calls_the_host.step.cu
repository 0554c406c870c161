// refused for: 'cudaLaunchHostFunc'
void step(const double* in, double* out, int n, cudaStream_t stream) {
    cudaLaunchHostFunc(stream, nullptr, nullptr);
    cudaStreamSynchronize(stream);
}
