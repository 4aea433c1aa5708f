#include "gradients/compress/low_rank.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "base/random.hpp"
#include "gradients/compress/compression.hpp"

namespace trainyard::gradients {
namespace {

// The remainder of a column that depends on the previous columns is rounding noise, not a
// direction.
constexpr double kIndependenceMin = 1e-6;

double dot(const float* p, size_t rows, size_t rank, size_t left, size_t right) {
  double sum = 0;
  for (size_t row = 0; row < rows; ++row)
    sum += double(p[row * rank + left]) * double(p[row * rank + right]);
  return sum;
}

// Calls a loop that is compiled for this rank, if the rank is a common one, or a general version.
template <class Loops>
void with_rank(size_t rank, const Loops& loops) {
  switch (rank) {
    case 1:
      return loops(std::integral_constant<size_t, 1>());
    case 2:
      return loops(std::integral_constant<size_t, 2>());
    case 4:
      return loops(std::integral_constant<size_t, 4>());
    case 8:
      return loops(std::integral_constant<size_t, 8>());
    default:
      return loops(rank);
  }
}

// Computes the product row by row, each sum in the order of k: apply(start of the row, row).
template <class Apply>
void over_product(const float* p, const float* q, Matrix shape, size_t rank, const Apply& apply) {
  std::vector<float> across(rank * shape.columns), row(shape.columns);
  for (size_t column = 0; column < shape.columns; ++column) {
    for (size_t k = 0; k < rank; ++k) across[k * shape.columns + column] = q[column * rank + k];
  }
  for (size_t i = 0; i < shape.rows; ++i) {
    std::fill(row.begin(), row.end(), 0.0f);
    for (size_t k = 0; k < rank; ++k) {
      const float weight = p[i * rank + k];
      const float* values = across.data() + k * shape.columns;
      for (size_t column = 0; column < shape.columns; ++column)
        row[column] += weight * values[column];
    }
    apply(i * shape.columns, std::span<const float>(row));
  }
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

void times(const float* m, Matrix shape, const float* q, size_t any_rank, float* p) {
  with_rank(any_rank, [&](auto rank) {
    for (size_t row = 0; row < shape.rows; ++row) {
      const float* values = m + row * shape.columns;
      float sums[Compression::kRankMax]{};
      for (size_t column = 0; column < shape.columns; ++column) {
        for (size_t k = 0; k < rank; ++k) sums[k] += values[column] * q[column * rank + k];
      }
      std::copy_n(sums, size_t(rank), p + row * rank);
    }
  });
}

void transposed_times(const float* m, Matrix shape, const float* p, size_t any_rank, float* q) {
  std::fill_n(q, shape.columns * any_rank, 0.0f);
  with_rank(any_rank, [&](auto rank) {
    for (size_t row = 0; row < shape.rows; ++row) {
      const float* values = m + row * shape.columns;
      float weights[Compression::kRankMax];
      std::copy_n(p + row * rank, size_t(rank), weights);
      for (size_t column = 0; column < shape.columns; ++column) {
        for (size_t k = 0; k < rank; ++k) q[column * rank + k] += values[column] * weights[k];
      }
    }
  });
}

void product(const float* p, const float* q, Matrix shape, size_t rank, float* m) {
  over_product(p, q, shape, rank, [m](size_t begin, std::span<const float> row) {
    std::copy(row.begin(), row.end(), m + begin);
  });
}

void subtract_product(const float* p, const float* q, Matrix shape, size_t rank, float* m) {
  over_product(p, q, shape, rank, [m](size_t begin, std::span<const float> row) {
    for (size_t i = 0; i < row.size(); ++i) m[begin + i] -= row[i];
  });
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
    const bool independent = after > before * kIndependenceMin * kIndependenceMin && after > 0;
    const double factor = independent ? 1 / std::sqrt(after) : 0;
    for (size_t row = 0; row < rows; ++row)
      p[row * rank + column] = float(double(p[row * rank + column]) * factor);
  }
}

}  // namespace trainyard::gradients
