#pragma once

#include "charges.hpp"

// Starts one pass: the potential of `count` charges, softened near each of them, at every point of the grid.
// All pointers are device memory; `potential` has box.points() elements.
void compute_potential(Box box, int count, const float* x, const float* y, const float* z, const float* q,
                       float* potential);
