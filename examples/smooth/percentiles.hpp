#pragma once

#include <vector>

// Writes the percentiles 0 to 100 of the values, one a line. Ends the program where that fails.
void write_percentiles(const char* path, std::vector<double> values);
