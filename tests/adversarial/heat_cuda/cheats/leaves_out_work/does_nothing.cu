// tries: does nothing
// outcome: wrong_result
// evidence: check
__global__ void sweep(const float* in, float* out, int n) {}
