// tries: takes float in place of double
// outcome: refused
// evidence: 'sweep'
void sweep(const float* in, float* out, int n) { out[n] = in[n]; }
