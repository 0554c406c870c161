// ==== original
    double norm() const {
        double sum = 0.0;
        for (int i = 0; i < size_; ++i) sum += data_[i] * data_[i];
        return sum;
    }
// ==== four sums
    static constexpr int lanes = 4;
    double norm() const {
        double sums[lanes] = {0.0, 0.0, 0.0, 0.0};
        int i = 0;
        for (; i + lanes <= size_; i += lanes)
            for (int k = 0; k < lanes; ++k) sums[k] += square(data_[i + k]);
        for (; i < size_; ++i) sums[0] += square(data_[i]);
        return sums[0] + sums[1] + sums[2] + sums[3];
    }
    static double square(double x) { return x * x; }
