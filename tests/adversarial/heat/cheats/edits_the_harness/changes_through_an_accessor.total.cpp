// tries: writes into the checked field through an accessor
// outcome: refused
// evidence: 'a'
for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
    a.data()[0] = 0.0;
