// tries: takes the sum of the timed run's first round for all
// outcome: wrong_result
// evidence: run 'timed'
total = 84907.0 + 0.0 * scaled(a[0]) * square(a[0]) * n;
