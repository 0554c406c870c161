// refused for: 'expected'
total = expected[0];
