// tries: defines another name, so that an older definition would be linked
// outcome: refused
// evidence: 'sweep'
void sweeps(const double*, double*, int) {}
