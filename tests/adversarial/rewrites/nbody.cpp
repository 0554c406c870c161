// ==== original
#include <cmath>
struct Body { float x, y, z, mass; };
inline float inverse(float v) { return 1.0f / std::sqrt(v); }
void forces(const Body* bodies, float* fx, float* fy, float* fz, int n) {
    for (int i = 0; i < n; ++i) {
        fx[i] = fy[i] = fz[i] = 0.0f;
        for (int j = 0; j < n; ++j) {
            float dx = bodies[j].x - bodies[i].x, dy = bodies[j].y - bodies[i].y, dz = bodies[j].z - bodies[i].z;
            float r = inverse(dx * dx + dy * dy + dz * dz + 1e-9f);
            float s = bodies[j].mass * r * r * r;
            fx[i] += s * dx;
            fy[i] += s * dy;
            fz[i] += s * dz;
        }
    }
}
// ==== sums in registers
#include <cmath>
struct Body { float x, y, z, mass; };
inline float inverse(float v) { return 1.0f / std::sqrt(v); }
void forces(const Body* __restrict bodies, float* __restrict fx, float* __restrict fy, float* __restrict fz, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) {
        const Body me = bodies[i];
        float sx = 0, sy = 0, sz = 0;
#pragma omp simd reduction(+ : sx, sy, sz)
        for (int j = 0; j < n; ++j) {
            const auto& other = bodies[j];
            const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            const float r = inverse(dx * dx + dy * dy + dz * dz + 1e-9f);
            const float s = other.mass * r * r * r;
            sx += s * dx, sy += s * dy, sz += s * dz;
        }
        fx[i] = sx;
        fy[i] = sy;
        fz[i] = sz;
    }
}
// ==== structure of arrays
#include <cmath>
#include <array>
#include <vector>
struct Body { float x, y, z, mass; };
inline float inverse(float v) { return 1.0f / std::sqrt(v); }
namespace {
enum class Axis : int { X, Y, Z };
class Columns {
  public:
    explicit Columns(const Body* bodies, int n) : x_(n), y_(n), z_(n), mass_(n) {
        for (int i = 0; i < n; ++i) x_[i] = bodies[i].x, y_[i] = bodies[i].y, z_[i] = bodies[i].z, mass_[i] = bodies[i].mass;
    }
    const float* x() const { return x_.data(); }
    const float* y() const noexcept { return y_.data(); }
    const float* z() const { return z_.data(); }
    const float* mass() const { return mass_.data(); }

  private:
    std::vector<float> x_, y_, z_, mass_;
};
}  // namespace
void forces(const Body* bodies, float* fx, float* fy, float* fz, int n) {
    const Columns columns(bodies, n);
    const float *x = columns.x(), *y = columns.y(), *z = columns.z(), *m = columns.mass();
    for (int i = 0; i < n; ++i) {
        std::array<float, 3> sum{};
        for (int j = 0; j < n; ++j) {
            const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            const float r = inverse(dx * dx + dy * dy + dz * dz + 1e-9f), s = m[j] * r * r * r;
            sum[0] += s * dx, sum[1] += s * dy, sum[static_cast<int>(Axis::Z)] += s * dz;
        }
        fx[i] = sum[0], fy[i] = sum[1], fz[i] = sum[2];
    }
}
