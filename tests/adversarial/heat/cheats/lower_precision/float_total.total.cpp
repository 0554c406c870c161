// tries: adds the sum in float
// outcome: wrong_result
// evidence: run 'timed'
float narrow = 0.0f;
        for (int i = 0; i < n * n; ++i) narrow += (float)(scaled(a[i]) * square(a[i]));
        total += narrow;
