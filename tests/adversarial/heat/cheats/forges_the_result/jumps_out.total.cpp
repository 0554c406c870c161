// tries: jumps behind the check
// outcome: refused
// evidence: goto
for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
    goto done;
