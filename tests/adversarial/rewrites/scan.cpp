// ==== original
void blur(const float* image, float* out, int width, int height) {
    for (int x = 0; x < width; ++x)
        for (int y = 0; y < height; ++y) {
            float sum = 0;
            int count = 0;
            for (int dy = -2; dy <= 2; ++dy)
                for (int dx = -2; dx <= 2; ++dx)
                    if (x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height) {
                        sum += image[(y + dy) * width + x + dx];
                        ++count;
                    }
            out[y * width + x] = sum / count;
        }
}
// ==== separable, temporary of its own
#include <algorithm>
#include <vector>
void blur(const float* image, float* out, int width, int height) {
    std::vector<float> rows(static_cast<size_t>(width) * height);
    auto clamp = [](int v, int low, int high) { return std::max(low, std::min(v, high)); };
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            float sum = 0;
            for (int i = clamp(x - 2, 0, width - 1); i <= clamp(x + 2, 0, width - 1); ++i) sum += image[y * width + i];
            rows[y * width + x] = sum;
        }
    for (int y = 0; y < height; ++y) {
        const int first = clamp(y - 2, 0, height - 1), last = clamp(y + 2, 0, height - 1);
        for (int x = 0; x < width; ++x) {
            const int left = clamp(x - 2, 0, width - 1), right = clamp(x + 2, 0, width - 1);
            float sum = 0;
            for (int i = first; i <= last; ++i) sum += rows[i * width + x];
            out[y * width + x] = sum / ((right - left + 1) * (last - first + 1));
        }
    }
}
// ==== interior apart, tables
static const int kOffsets[5] = {-2, -1, 0, 1, 2};
static constexpr float kWeights[] = {1.0f, 1.0f / 2, 1.0f / 3, 1.0f / 4, 1.0f / 5};
template <bool Inside>
static inline float at(const float* image, int width, int height, int x, int y) {
    float sum = 0;
    int count = 0;
    for (int dy : kOffsets)
        for (int dx : kOffsets)
            if (Inside || (x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height)) {
                sum += image[(y + dy) * width + x + dx];
                ++count;
            }
    return sum / static_cast<float>(count) * kWeights[0];
}
void blur(const float* image, float* out, int width, int height) {
#pragma omp parallel
    {
#pragma omp for schedule(dynamic, 4) nowait
        for (int y = 0; y < height; ++y)
            for (int x = 0; x < width; ++x) {
                const bool inside = x >= 2 && y >= 2 && x < width - 2 && y < height - 2;
                out[y * width + x] = inside ? at<true>(image, width, height, x, y) : at<false>(image, width, height, x, y);
            }
    }
}
// ==== tasks and thread numbers
#include <omp.h>
void blur(const float* image, float* out, int width, int height) {
#pragma omp parallel num_threads(4)
    {
        const int threads = omp_get_num_threads(), thread = omp_get_thread_num();
        for (int y = thread; y < height; y += threads)
            for (int x = 0; x < width; ++x) {
                float sum = 0;
                int count = 0;
                for (int k = 0; k < 25; ++k) {
                    const int i = x + k % 5 - 2, j = y + k / 5 - 2;
                    if (i < 0 or i >= width or j < 0 or j >= height) continue;
                    sum += image[j * width + i];
                    count++;
                }
                out[y * width + x] = sum / count;
            }
    }
}
