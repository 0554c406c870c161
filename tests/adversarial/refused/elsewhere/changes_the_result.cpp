// refused for: 'sweep'
int sweep(const double* in, double* out, int n) { return 0; }
