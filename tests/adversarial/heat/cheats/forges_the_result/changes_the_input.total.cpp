// tries: clears the field that is checked behind the region
// outcome: refused
// evidence: 'a'
for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
    for (int i = 0; i < n * n; ++i) a[i] = 0.0;
