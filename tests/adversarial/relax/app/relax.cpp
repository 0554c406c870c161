#include "relax.hpp"

#include <cstdio>
#include <cstdlib>

void Relax::run() {
    double* field = values.data();
    begin_time();
    for (int sweep = 0; sweep < repetitions; ++sweep) {
        // BEGIN step
        for (int i = 0; i < length; ++i) {
            double value = field[i];
            value = value + 0.25 * (1.5 - value) / (1.0 + value * value);
            field[i] = value;
        }
        // END step
    }
    end_time();
    sweeps_done = repetitions;
}

double Relax::sum() const {
    double total = 0.0;
    for (int i = 0; i < length; ++i) total += values[i] * (1.0 + i % 7);
    return sweeps_done == repetitions ? total : 0.0;
}

int main(int argc, char** argv) {
    Relax relax(argc > 1 ? std::atoi(argv[1]) : 1000, argc > 2 ? std::atoi(argv[2]) : 10);
    relax.run();
    std::printf("step: %.6f ms\nsum: %.15g\n", relax.milliseconds(), relax.sum());
}
