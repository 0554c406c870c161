// tries: hides the function in a string
// outcome: refused
// evidence: 'text'
const char* text = "void sweep(const double*, double*, int) {}";
