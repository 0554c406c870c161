// refused for: return
if (total == 0.0) return 0;
    for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
