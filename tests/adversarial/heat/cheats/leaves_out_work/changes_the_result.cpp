// tries: changes what the function returns and does nothing
// outcome: refused
// evidence: 'sweep'
int sweep(const double* in, double* out, int n) { return 0; }
