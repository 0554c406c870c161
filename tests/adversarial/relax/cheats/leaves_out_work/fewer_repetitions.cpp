// tries: lets the loop around it end early
// outcome: refused
// evidence: 'repetitions' of the object around it
        for (int i = 0; i < length; ++i) {
            double value = field[i];
            value = value + 0.25 * (1.5 - value) / (1.0 + value * value);
            field[i] = value;
        }
        repetitions = 1;
