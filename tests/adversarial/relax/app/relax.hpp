#pragma once
#include "measured.hpp"

#include <vector>

class Relax : public Measured {
public:
    Relax(int count, int times) : Measured(times), values(count), length(count) {
        for (int i = 0; i < count; ++i) values[i] = 1.0 + (i * 37 % 101) / 101.0;
    }
    void run() override;
    double sum() const;

private:
    std::vector<double> values;
    int length;
    int sweeps_done = 0;
};
