// tries: closes main and opens another function around the check
// outcome: build_failed
// evidence: error
}
void liar() {
