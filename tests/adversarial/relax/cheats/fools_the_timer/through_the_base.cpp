// tries: names the base class's function by its whole name
// outcome: refused
// evidence: 'end_time' of the object around it
        Measured::end_time();
        for (int i = 0; i < length; ++i) {
            double value = field[i];
            value = value + 0.25 * (1.5 - value) / (1.0 + value * value);
            field[i] = value;
        }
        Measured::begin_time();
