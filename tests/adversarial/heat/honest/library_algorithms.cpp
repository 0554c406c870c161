// does: writes each row by std::transform and std::copy of a buffer
#include <algorithm>
void sweep(const double* in, double* out, int n) {
    std::vector<double> sides(n);
    double* const side = sides.data();
    for (int i = 1; i < n - 1; ++i) {
        const double* here = in + i * n;
        std::transform(here, here + n - 2, here + 2, side, [](double left, double right) { return left + right; });
        for (int j = 1; j < n - 1; ++j) side[j - 1] = 0.25 * (side[j - 1] + here[j - n] + here[j + n]);
        std::copy(side, side + n - 2, out + i * n + 1);
    }
}
