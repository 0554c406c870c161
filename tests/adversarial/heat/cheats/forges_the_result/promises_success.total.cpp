// tries: lets the compiler drop the check by __builtin_unreachable
// outcome: refused
// evidence: '__builtin_unreachable'
for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
    if (a != b) __builtin_unreachable();
