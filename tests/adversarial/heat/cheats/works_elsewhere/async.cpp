// tries: works in std::async and returns before it is done
// outcome: refused
// evidence: 'async'
void sweep(const double* in, double* out, int n) {
    auto f = std::async([=] { out[0] = in[0]; });
}
