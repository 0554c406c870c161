// tries: takes time off what the object has added up
// outcome: refused
// evidence: 'spent_ms' of the object around it
        for (int i = 0; i < length; ++i) {
            double value = field[i];
            value = value + 0.25 * (1.5 - value) / (1.0 + value * value);
            field[i] = value;
        }
        spent_ms -= 0.05;
