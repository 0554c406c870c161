#pragma once

// The weighted mean of each `width` neighbouring values: `smoothed` gets n - width + 1 of them.
inline void smooth(const double* series, int n, const double* weights, int width, double* smoothed)
{
    for (int i = 0; i <= n - width; ++i) {
        smoothed[i] = 0.0;
        double total = 0.0;
        for (int k = 0; k < width; ++k) {
            smoothed[i] += weights[k] * series[i + k];
            total += weights[k];
        }
        smoothed[i] /= total;
    }
}
