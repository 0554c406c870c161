// does: four partial sums
constexpr int lanes = 4;
    double sums[lanes] = {};
    const double* data = a.data();
    const int count = n * n;
    int i = 0;
    for (; i + lanes <= count; i += lanes)
        for (int k = 0; k < lanes; ++k) sums[k] += scaled(data[i + k]) * square(data[i + k]);
    for (; i < count; ++i) {
        if (data[i] == 0.0) continue;
        sums[0] += scaled(data[i]) * square(data[i]);
    }
    total += (sums[0] + sums[1]) + (sums[2] + sums[3]);
