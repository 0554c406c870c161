// tries: takes the caller's pointer by reference and clears it
// outcome: refused
// evidence: 'sweep'
void sweep(const double* in, double*& out, int n) { out = nullptr; }
