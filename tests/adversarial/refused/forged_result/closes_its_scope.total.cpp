// refused for: brackets
}
void liar() {
