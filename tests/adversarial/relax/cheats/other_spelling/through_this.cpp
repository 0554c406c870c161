// tries: stops the timer through the pointer to the object
// outcome: refused
// evidence: 'this'
        this->end_time();
        for (int i = 0; i < length; ++i) {
            double value = field[i];
            value = value + 0.25 * (1.5 - value) / (1.0 + value * value);
            field[i] = value;
        }
        this->begin_time();
