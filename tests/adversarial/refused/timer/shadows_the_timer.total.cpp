// refused for: 'timer'
for (int i = 0; i < n * n; ++i) {
        total += scaled(a[i]) * square(a[i]);
    }
    struct { double seconds = 0; } timer;
