// potential: the electric potential of point charges on a grid, summed directly on the GPU.

#include "charges.hpp"
#include "cuda_check.cuh"
#include "potential.cuh"
#include "reference.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct Options {
    int n = 64;
    int charges = 2000;
    int passes = 5;
    unsigned long seed = 1;
};

static Options read_options(int argc, char** argv)
{
    Options options;
    for (int i = 1; i < argc; i += 2) {
        const char* value = i + 1 < argc ? argv[i + 1] : "";
        if (std::strcmp(argv[i], "--n") == 0) options.n = std::atoi(value);
        else if (std::strcmp(argv[i], "--charges") == 0) options.charges = std::atoi(value);
        else if (std::strcmp(argv[i], "--passes") == 0) options.passes = std::atoi(value);
        else if (std::strcmp(argv[i], "--seed") == 0) options.seed = std::strtoul(value, nullptr, 10);
        else options.n = 0;
    }
    if (options.n < 2 || options.n > 512 || options.charges < 1 || options.passes < 1) {
        std::fprintf(stderr, "usage: potential [--n POINTS] [--charges COUNT] [--passes COUNT] [--seed SEED]\n");
        std::exit(2);
    }
    return options;
}

static float* on_device(const std::vector<float>& values)
{
    float* copy = nullptr;
    CUDA_CHECK(cudaMalloc(&copy, values.size() * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(copy, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    return copy;
}

static void write_numbers(const char* path, const std::vector<float>& numbers)
{
    std::FILE* file = std::fopen(path, "wb");
    const bool written = file && std::fwrite(numbers.data(), sizeof(float), numbers.size(), file) == numbers.size();
    if (!file || std::fclose(file) != 0 || !written) {
        std::fprintf(stderr, "potential: cannot write %s\n", path);
        std::exit(2);
    }
}

int main(int argc, char** argv)
{
    const Options options = read_options(argc, argv);
    const Box box = {options.n, 1.0f / static_cast<float>(options.n - 1)};
    const Charges charges = random_charges(options.charges, options.seed);

    float *x = on_device(charges.x), *y = on_device(charges.y), *z = on_device(charges.z), *q = on_device(charges.q);
    std::vector<float> potential(box.points());
    float* result = nullptr;
    CUDA_CHECK(cudaMalloc(&result, potential.size() * sizeof(float)));
    CUDA_CHECK(cudaMemset(result, 0xff, potential.size() * sizeof(float)));

    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaEventRecord(start));
    for (int pass = 0; pass < options.passes; ++pass) {
        compute_potential(box, charges.count(), x, y, z, q, result);
    }
    CUDA_CHECK(cudaEventRecord(stop));
    CUDA_CHECK(cudaEventSynchronize(stop));
    float elapsed_ms = 0.0f;
    CUDA_CHECK(cudaEventElapsedTime(&elapsed_ms, start, stop));
    CUDA_CHECK(cudaMemcpy(potential.data(), result, potential.size() * sizeof(float), cudaMemcpyDeviceToHost));

    const double error = largest_error(charges, box, potential);
    const bool pass = error <= 1e-5;
    write_numbers("potential.bin", potential);
    double norm = 0.0;
    for (float value : potential) norm += static_cast<double>(value) * value;

    std::printf("grid of %d^3 points, %d charges, seed %lu\n", box.n, charges.count(), options.seed);
    std::printf("potential: %.4f ms per pass, mean of %d\n", elapsed_ms / options.passes, options.passes);
    std::printf("norm: %.8e\n", std::sqrt(norm / box.points()));
    std::printf("largest error: %.1e\n", error);
    std::printf("%s\n", pass ? "PASS" : "FAIL");

    for (float* memory : {x, y, z, q, result}) CUDA_CHECK(cudaFree(memory));
    return pass ? 0 : 1;
}
