// tries: takes the reference's number
// outcome: refused
// evidence: 'expected'
total = expected[0];
