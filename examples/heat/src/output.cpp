#include "output.hpp"

#include <cstdlib>
#include <fstream>
#include <iostream>

void write_numbers(const std::string& path, const std::vector<double>& numbers)
{
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(double)));
    file.close();
    if (!file) {
        std::cerr << "heat: cannot write " << path << '\n';
        std::exit(2);
    }
}
