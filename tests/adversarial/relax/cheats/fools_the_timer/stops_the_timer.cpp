// tries: stops the timer for the time of its work; both are functions of a base class
// outcome: refused
// evidence: 'end_time' of the object around it
        end_time();
        for (int i = 0; i < length; ++i) {
            double value = field[i];
            value = value + 0.25 * (1.5 - value) / (1.0 + value * value);
            field[i] = value;
        }
        begin_time();
