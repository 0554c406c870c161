// does: a reduction over lanes
#pragma omp parallel for simd reduction(+ : total)
    for (int i = 0; i < n * n; ++i) {
        total += 1.5 * a[i] * (a[i] * a[i]);
    }
