// tries: is no code at all, so that an older object would be used
// outcome: build_failed
// evidence: error
@ this is no code
