#include "collectives/compress/low_rank.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.hpp"

namespace trainyard::collectives {
namespace {

// What is left of a column that lay among those before it is rounding, not direction.
constexpr double independence_min = 1e-6;

double dot(const float* p, size_t rows, size_t rank, size_t left, size_t right) {
  double sum = 0;
  for (size_t row = 0; row < rows; ++row) sum += double(p[row * rank + left]) * double(p[row * rank + right]);
  return sum;
}

}  // namespace

void first_q(std::span<float> q, uint64_t seed) {
  SeededRandom random(seed);
  constexpr uint64_t steps = 1 << 24;
  for (float& value : q) value = float(random.below(steps)) / float(steps / 2) - 1.0f;
}

void revive_q(std::span<float> q, size_t rank, uint64_t seed) {
  for (size_t k = 0; k < rank; ++k) {
    bool zero = true;
    for (size_t i = k; i < q.size() && zero; i += rank) zero = q[i] == 0;
    if (!zero) continue;
    std::vector<float> fresh(q.size() / rank);
    first_q(fresh, seed + k);
    for (size_t i = 0; i < fresh.size(); ++i) q[i * rank + k] = fresh[i];
  }
}

void point_to_row(float* p, size_t rows, size_t rank, size_t row) {
  for (size_t i = 0; i < rows; ++i) p[i * rank + rank - 1] = i == row ? 1.0f : 0.0f;
}

void times(const float* m, Matrix shape, const float* q, size_t rank, float* p) {
  for (size_t row = 0; row < shape.rows; ++row) {
    float* sums = p + row * rank;
    std::fill_n(sums, rank, 0.0f);
    for (size_t column = 0; column < shape.columns; ++column) {
      const float value = m[row * shape.columns + column];
      for (size_t k = 0; k < rank; ++k) sums[k] += value * q[column * rank + k];
    }
  }
}

void transposed_times(const float* m, Matrix shape, const float* p, size_t rank, float* q) {
  std::fill_n(q, shape.columns * rank, 0.0f);
  for (size_t row = 0; row < shape.rows; ++row) {
    const float* weights = p + row * rank;
    for (size_t column = 0; column < shape.columns; ++column) {
      const float value = m[row * shape.columns + column];
      for (size_t k = 0; k < rank; ++k) q[column * rank + k] += value * weights[k];
    }
  }
}

void product(const float* p, const float* q, Matrix shape, size_t rank, float* m) {
  std::fill_n(m, shape.elements(), 0.0f);
  for (size_t row = 0; row < shape.rows; ++row) {
    for (size_t column = 0; column < shape.columns; ++column) {
      float sum = 0;
      for (size_t k = 0; k < rank; ++k) sum += p[row * rank + k] * q[column * rank + k];
      m[row * shape.columns + column] = sum;
    }
  }
}

void subtract_product(const float* p, const float* q, Matrix shape, size_t rank, float* m) {
  for (size_t row = 0; row < shape.rows; ++row) {
    for (size_t column = 0; column < shape.columns; ++column) {
      float sum = 0;
      for (size_t k = 0; k < rank; ++k) sum += p[row * rank + k] * q[column * rank + k];
      m[row * shape.columns + column] -= sum;
    }
  }
}

void orthonormalise(float* p, size_t rows, size_t rank) {
  for (size_t column = 0; column < rank; ++column) {
    const double before = dot(p, rows, rank, column, column);
    for (size_t other = 0; other < column; ++other) {
      const double along = dot(p, rows, rank, column, other);
      for (size_t row = 0; row < rows; ++row)
        p[row * rank + column] =
            float(double(p[row * rank + column]) - along * double(p[row * rank + other]));
    }
    const double after = dot(p, rows, rank, column, column);
    const bool independent = after > before * independence_min * independence_min && after > 0;
    const double factor = independent ? 1 / std::sqrt(after) : 0;
    for (size_t row = 0; row < rows; ++row)
      p[row * rank + column] = float(double(p[row * rank + column]) * factor);
  }
}

}  // namespace trainyard::collectives
