// does: tiles over both axes
namespace {
constexpr int kTile = 64;
inline int least(int a, int b) { return a < b ? a : b; }
}

void sweep(const double* in, double* out, int n) {
#pragma omp parallel for collapse(2)
    for (int ii = 1; ii < n - 1; ii += kTile)
        for (int jj = 1; jj < n - 1; jj += kTile)
            for (int i = ii; i < least(ii + kTile, n - 1); ++i)
                for (int j = jj; j < least(jj + kTile, n - 1); ++j)
                    out[i * n + j] =
                        0.25 * (in[(i - 1) * n + j] + in[(i + 1) * n + j] + in[i * n + j - 1] + in[i * n + j + 1]);
}
