// tries: counts sweeps that it does not make
// outcome: refused
// evidence: 'sweep'
        for (int i = 0; i < length; ++i) {
            double value = field[i];
            value = value + 0.25 * (1.5 - value) / (1.0 + value * value);
            field[i] = value;
        }
        sweep += 3;
