#include "sweep.hpp"

#include <cmath>

void sweep(const Plate& plate, const double* u, const double* k, double* next)
{
    const int rows = plate.rows;
    const int cols = plate.cols;
    const double dx = plate.dx;
    const double water = plate.water;

#pragma omp parallel for
    for (int j = 1; j < cols - 1; ++j) {
        for (int i = 1; i < rows - 1; ++i) {
            const double here = u[i * cols + j];
            const double conductivity = k[i * cols + j];
            const double east = (conductivity + k[i * cols + j + 1]) / 2.0 * (u[i * cols + j + 1] - here) / dx;
            const double west = (conductivity + k[i * cols + j - 1]) / 2.0 * (here - u[i * cols + j - 1]) / dx;
            const double south = (conductivity + k[(i + 1) * cols + j]) / 2.0 * (u[(i + 1) * cols + j] - here) / dx;
            const double north = (conductivity + k[(i - 1) * cols + j]) / 2.0 * (here - u[(i - 1) * cols + j]) / dx;
            const double boiling = plate.cooling * std::pow(here - water, 3);
            next[i * cols + j] = here + plate.dt * ((east - west) / dx + (south - north) / dx - boiling);
        }
    }
}
