// does: one load and one store by a restrict pointer
        double* __restrict__ here = field;
        const int count = length;
        for (int i = 0; i < count; ++i) {
            const double value = here[i];
            here[i] = value + 0.25 * (1.5 - value) / (1.0 + value * value);
        }
