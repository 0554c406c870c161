// refused for: 'sweep'
void sweep(const double* in, double*& out, int n) { out = nullptr; }
