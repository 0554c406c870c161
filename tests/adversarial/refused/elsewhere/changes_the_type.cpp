// refused for: 'sweep'
void sweep(const float* in, float* out, int n) { out[n] = in[n]; }
