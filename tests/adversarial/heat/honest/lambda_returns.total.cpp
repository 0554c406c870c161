// does: a term by a lambda
auto term = [](double x) { return 1.5 * x * x * x; };
    for (double x : a) total += term(x);
