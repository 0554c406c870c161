// tries: returns success from main before the check
// outcome: refused
// evidence: return
if (total == 0.0) return 0;
    for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
