// heat: a plate with hot spots cools down in boiling water, step after step.

#include "checks.hpp"
#include "grid.hpp"
#include "output.hpp"
#include "sweep.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct Options {
    int n = 500;
    int steps = 50;
    unsigned long seed = 1;
};

static Options read_options(int argc, char** argv)
{
    Options options;
    for (int i = 1; i < argc; i += 2) {
        const char* value = i + 1 < argc ? argv[i + 1] : "";
        if (std::strcmp(argv[i], "--n") == 0) options.n = std::atoi(value);
        else if (std::strcmp(argv[i], "--steps") == 0) options.steps = std::atoi(value);
        else if (std::strcmp(argv[i], "--seed") == 0) options.seed = std::strtoul(value, nullptr, 10);
        else options.n = 0;
    }
    if (options.n < 3 || options.steps < 1) {
        std::fprintf(stderr, "usage: heat [--n POINTS] [--steps STEPS] [--seed SEED]\n");
        std::exit(2);
    }
    return options;
}

int main(int argc, char** argv)
{
    const Options options = read_options(argc, argv);
    const int n = options.n;
    const double dx = 1.0 / (n - 1);
    const Plate plate = {n, n, dx, 0.15 * dx * dx, 0.2, 1000.0};

    const Grid conductivity = grained(n, n, options.seed);
    Grid now = hot_spots(n, n, options.seed);
    Grid next = now;
    const double hottest = *std::max_element(now.values.begin(), now.values.end());

    const double start = omp_get_wtime();
    for (int step = 0; step < options.steps; ++step) {
        std::swap(now.values, next.values);
        sweep(plate, now.data(), conductivity.data(), next.data());
    }
    const double elapsed_ms = (omp_get_wtime() - start) * 1e3;

    const double error = defect(plate, now, conductivity, next);
    const bool pass = error <= 1e-12 && within(next, plate.water - 1e-9, hottest + 1e-9);
    write_numbers("field.bin", next.values);

    std::printf("plate of %d x %d points, %d steps, seed %lu\n", n, n, options.steps, options.seed);
    std::printf("sweep: %.3f ms\n", elapsed_ms);
    std::printf("norm: %.12e\n", norm(next));
    std::printf("defect of the last step: %.1e\n", error);
    std::printf("%s\n", pass ? "PASS" : "FAIL");
    return pass ? 0 : 1;
}
