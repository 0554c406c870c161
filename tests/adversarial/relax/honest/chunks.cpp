// does: reads a number of the object for the size of a block
        const int block = repetitions > 4 ? 1024 : 256;
        for (int start = 0; start < length; start += block) {
            const int end = start + block < length ? start + block : length;
            for (int i = start; i < end; ++i) {
                const double value = field[i];
                field[i] = value + 0.25 * (1.5 - value) / (1.0 + value * value);
            }
        }
