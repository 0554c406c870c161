#pragma once

#include <cstdint>
#include <vector>

// A value for every point of a rectangular grid, row after row.
struct Grid {
    int rows;
    int cols;
    std::vector<double> values;

    Grid(int rows, int cols, double value = 0.0);
    double at(int row, int col) const { return values[static_cast<std::size_t>(row) * cols + col]; }
    double* data() { return values.data(); }
    const double* data() const { return values.data(); }
};

// Temperatures between 0.2 and 1: a cold plate with a dozen hot spots at random places.
Grid hot_spots(int rows, int cols, std::uint64_t seed);

// Conductivities between 0.5 and 1.5, random at every point.
Grid grained(int rows, int cols, std::uint64_t seed);
