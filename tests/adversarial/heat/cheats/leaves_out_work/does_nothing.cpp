// tries: does nothing at all
// outcome: wrong_result
// evidence: run 'timed'
void sweep(const double* in, double* out, int n) {
}
