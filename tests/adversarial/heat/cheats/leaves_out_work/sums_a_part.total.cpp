// tries: sums every second element and doubles the sum
// outcome: wrong_result
// evidence: run 'timed'
for (int i = 0; i < n * n; i += 2) total += 2.0 * scaled(a[i]) * square(a[i]);
