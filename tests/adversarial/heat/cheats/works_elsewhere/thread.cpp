// tries: works in a detached thread and returns at once
// outcome: refused
// evidence: 'thread'
void sweep(const double* in, double* out, int n) {
    std::thread([=] { out[0] = in[0]; }).detach();
}
