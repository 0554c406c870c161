#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

double largest_error(const Charges& charges, const Box& box, const std::vector<float>& potential)
{
    const int stride = std::max(1, box.points() / 509);
    double largest = 0.0;
    for (int point = 0; point < box.points(); point += stride) {
        const double px = static_cast<double>(point % box.n) * box.spacing;
        const double py = static_cast<double>(point / box.n % box.n) * box.spacing;
        const double pz = static_cast<double>(point / box.n / box.n) * box.spacing;
        double sum = 0.0, magnitude = 0.0;
        for (int i = 0; i < charges.count(); ++i) {
            const double dx = px - charges.x[i], dy = py - charges.y[i], dz = pz - charges.z[i];
            const double term = charges.q[i] / std::sqrt(dx * dx + dy * dy + dz * dz + 1e-4);
            sum += term;
            magnitude += std::fabs(term);
        }
        const double error = std::fabs(potential[point] - sum) / magnitude;
        if (!std::isfinite(error)) return std::numeric_limits<double>::infinity();
        largest = std::max(largest, error);
    }
    return largest;
}
