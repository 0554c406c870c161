// does: has local variables that are called as members are
        const double begin_time = 1.5;
        for (int i = 0; i < length; ++i) {
            const double spent_ms = field[i];
            field[i] = spent_ms + 0.25 * (begin_time - spent_ms) / (1.0 + spent_ms * spent_ms);
        }
