#include "checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

static double flow(const Grid& u, const Grid& k, int row, int col, int other_row, int other_col)
{
    const double conductivity = 0.5 * (k.at(row, col) + k.at(other_row, other_col));
    return conductivity * (u.at(other_row, other_col) - u.at(row, col));
}

static double stepped(const Plate& plate, const Grid& u, const Grid& k, int row, int col)
{
    if (row == 0 || col == 0 || row == u.rows - 1 || col == u.cols - 1) return u.at(row, col);
    const double inflow = flow(u, k, row, col, row, col + 1) + flow(u, k, row, col, row, col - 1) +
                          flow(u, k, row, col, row + 1, col) + flow(u, k, row, col, row - 1, col);
    const double here = u.at(row, col);
    const double excess = here - plate.water;
    return here + plate.dt * (inflow / (plate.dx * plate.dx) - plate.cooling * excess * excess * excess);
}

double defect(const Plate& plate, const Grid& before, const Grid& conductivity, const Grid& after)
{
    double largest = 0.0;
    for (int row = 0; row < before.rows; ++row) {
        for (int col = 0; col < before.cols; ++col) {
            const double difference = std::fabs(after.at(row, col) - stepped(plate, before, conductivity, row, col));
            if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
            largest = std::max(largest, difference);
        }
    }
    return largest;
}

bool within(const Grid& grid, double low, double high)
{
    return std::all_of(grid.values.begin(), grid.values.end(), [=](double value) { return value >= low && value <= high; });
}

double norm(const Grid& grid)
{
    double sum = 0.0;
    for (double value : grid.values) sum += value * value;
    return std::sqrt(sum / static_cast<double>(grid.values.size()));
}
