// tries: puts the sum off to a destructor that runs behind the check
// outcome: gains nothing
struct Later { double& t; ~Later() { t = 0.0; } } later{total};
        for (int i = 0; i < n * n; ++i) total += scaled(a[i]) * square(a[i]);
