#include "grid.hpp"

#include <algorithm>
#include <cmath>
#include <random>

Grid::Grid(int rows, int cols, double value)
    : rows(rows), cols(cols), values(static_cast<std::size_t>(rows) * cols, value)
{
}

// Uniform in [0, 1), the same with every standard library.
static double uniform(std::mt19937_64& random)
{
    return static_cast<double>(random() >> 11) / 9007199254740992.0;
}

Grid hot_spots(int rows, int cols, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    Grid grid(rows, cols, 0.2);
    const double radius = 0.08 * std::min(rows, cols);
    for (int spot = 0; spot < 12; ++spot) {
        const double y = uniform(random) * rows;
        const double x = uniform(random) * cols;
        const double height = 0.3 + 0.5 * uniform(random);
        const int top = std::max(0, static_cast<int>(y - radius)), bottom = std::min<int>(rows, y + radius + 1);
        const int left = std::max(0, static_cast<int>(x - radius)), right = std::min<int>(cols, x + radius + 1);
        for (int i = top; i < bottom; ++i) {
            for (int j = left; j < right; ++j) {
                const double distance = std::hypot(i - y, j - x);
                double& value = grid.values[static_cast<std::size_t>(i) * cols + j];
                if (distance < radius) value = std::max(value, 0.2 + height * (1.0 - distance / radius));
            }
        }
    }
    return grid;
}

Grid grained(int rows, int cols, std::uint64_t seed)
{
    std::mt19937_64 random(seed + 1);
    Grid grid(rows, cols);
    for (double& value : grid.values) value = 0.5 + uniform(random);
    return grid;
}
