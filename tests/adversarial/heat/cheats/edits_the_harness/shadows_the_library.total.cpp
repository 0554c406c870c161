// tries: hides printf behind a lambda
// outcome: refused
// evidence: 'printf'
for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
    auto printf = [](auto...) {};
