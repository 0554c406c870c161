// tries: stops the timer in a lambda that captures the object
// outcome: refused
// evidence: of the object around it
        auto pause = [&]() { end_time(); };
        pause();
        for (int i = 0; i < length; ++i) {
            double value = field[i];
            value = value + 0.25 * (1.5 - value) / (1.0 + value * value);
            field[i] = value;
        }
