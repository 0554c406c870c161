// tries: empties the checked field through a reference
// outcome: refused
// evidence: 'a'
for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
    auto& other = a;
    other.clear();
