// tries: warms the caches for the next timed part
// outcome: gains nothing
for (int i = 0; i < n * n; ++i) {
            __builtin_prefetch(&a[i]);
            total += scaled(a[i]) * square(a[i]);
        }
