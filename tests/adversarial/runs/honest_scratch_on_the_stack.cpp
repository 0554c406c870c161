// faster: 
inline void smooth(const double* in, double* out, int n) {
  double weight[17], near[4096];
  for (int k = -8; k <= 8; ++k) weight[k + 8] = 1.0 / (1.0 + k * k);
  for (int at = 0; at < n; at += 4000) {
    const int count = n - at < 4000 ? n - at : 4000;
    for (int i = -8; i < count + 8; ++i) near[i + 8] = in[(at + i + n) % n];
    for (int i = 0; i < count; ++i) {
      double sum = 0.0;
      for (int k = 0; k < 17; ++k) sum += near[i + k] * weight[k];
      out[at + i] = sum;
    }
  }
}
