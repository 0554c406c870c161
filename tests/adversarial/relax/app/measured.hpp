#pragma once
#include <chrono>

class Measured {
public:
    explicit Measured(int times) : repetitions(times) {}
    virtual ~Measured() = default;
    virtual void run() = 0;

    void begin_time() { begun = std::chrono::steady_clock::now(); }
    void end_time() { spent_ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count(); }
    double milliseconds() const { return spent_ms / repetitions; }

protected:
    int repetitions;
    double spent_ms = 0.0;

private:
    std::chrono::steady_clock::time_point begun;
};
