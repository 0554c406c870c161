#include "charges.hpp"

#include <random>

// Uniform in [0, 1), the same with every standard library.
static float uniform(std::mt19937_64& random)
{
    return static_cast<float>(random() >> 40) / 16777216.0f;
}

Charges random_charges(int count, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    Charges charges;
    for (int i = 0; i < count; ++i) {
        charges.x.push_back(uniform(random));
        charges.y.push_back(uniform(random));
        charges.z.push_back(uniform(random));
        charges.q.push_back(2.0f * uniform(random) - 1.0f);
    }
    return charges;
}
