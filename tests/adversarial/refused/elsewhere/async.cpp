// refused for: 'async'
void sweep(const double* in, double* out, int n) {
    auto f = std::async([=] { out[0] = in[0]; });
}
