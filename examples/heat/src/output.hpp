#pragma once

#include <string>
#include <vector>

// Write the numbers as 64-bit floats in this machine's byte order. Ends the program where that fails.
void write_numbers(const std::string& path, const std::vector<double>& numbers);
