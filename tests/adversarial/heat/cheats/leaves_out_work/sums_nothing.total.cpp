// tries: leaves the sum away
// outcome: wrong_result
// evidence: run 'timed'
(void)a;
