// tries: empties the field that is checked
// outcome: refused
// evidence: 'a'
for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
    a.clear();
