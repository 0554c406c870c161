#pragma once

#include "grid.hpp"
#include "sweep.hpp"

// The largest difference between `after` and one time step from `before`, worked out anew, one row after another,
// from the heat that crosses each side of each cell.
double defect(const Plate& plate, const Grid& before, const Grid& conductivity, const Grid& after);

// Whether every temperature lies in [low, high]: a plate that only spreads and loses heat invents no extremes.
bool within(const Grid& grid, double low, double high);

// The root of the mean square.
double norm(const Grid& grid);
