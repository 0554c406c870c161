#pragma once

#include "charges.hpp"

#include <vector>

// The largest difference between `potential` and sums in double precision on the host, at a few hundred points spread
// over the grid, relative to the sum of the magnitudes of what was added there.
double largest_error(const Charges& charges, const Box& box, const std::vector<float>& potential);
