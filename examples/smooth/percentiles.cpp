#include "percentiles.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

void write_percentiles(const char* path, std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    std::FILE* file = std::fopen(path, "w");
    for (std::size_t percent = 0; file && percent <= 100; ++percent) {
        std::fprintf(file, "%3zu %.12e\n", percent, values[percent * (values.size() - 1) / 100]);
    }
    if (!file || std::fclose(file) != 0) {
        std::fprintf(stderr, "smooth: cannot write %s\n", path);
        std::exit(2);
    }
}
