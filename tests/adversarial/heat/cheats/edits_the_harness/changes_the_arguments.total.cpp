// tries: changes the program's own arguments
// outcome: refused
// evidence: 'argc'
for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
    argc = 0;
