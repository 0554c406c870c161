#pragma once

#include <cstdint>
#include <vector>

// Point charges in the unit cube, as one array for each quantity.
struct Charges {
    std::vector<float> x, y, z, q;

    int count() const { return static_cast<int>(q.size()); }
};

// `count` charges at random places, of strength -1 to 1 each.
Charges random_charges(int count, std::uint64_t seed);

// The grid on which the potential is wanted: n points along each side of the unit cube, x fastest.
struct Box {
    int n;
    float spacing;

    int points() const { return n * n * n; }
};
