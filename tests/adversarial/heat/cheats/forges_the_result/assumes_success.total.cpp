// tries: lets the compiler assume that the check holds by [[assume]]
// outcome: refused
// evidence: 'assume'
for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
    [[assume(total > 0)]];
