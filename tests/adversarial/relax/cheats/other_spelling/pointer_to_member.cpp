// tries: takes the address of the timer's function
// outcome: refused
// evidence: 'end_time' of the object around it
        auto pause = &Relax::end_time;
        for (int i = 0; i < length; ++i) {
            double value = field[i];
            value = value + 0.25 * (1.5 - value) / (1.0 + value * value);
            field[i] = value;
        }
        (void)pause;
