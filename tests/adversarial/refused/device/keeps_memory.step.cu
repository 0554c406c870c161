// refused for: 'cudaMalloc'
void step(const double* in, double* out, int n, cudaStream_t stream) {
    double* p; cudaMalloc(&p, 8);
    cudaStreamSynchronize(stream);
}
