// Approximates a matrix by the product of two thin ones, with one step of power iteration from the
// result of the last step.
//
//   M, rows x columns, of one rank: its gradient and its previous error
//   Q, columns x r, of the previous step
//   P = average over ranks of M Q, made orthonormal, column by column
//   Q_own = M' P;  Q = average over ranks of Q_own
//   every rank gets P Q';  its error is M - P Q_own', added to the next M
//
// Errors in directions that cancel out between the ranks never appear in P. To keep them from
// growing forever, every kRowInterval steps the last column of P is the direction of one row: that
// row is sent exactly and has no error. Within kRowInterval x rows steps every row is sent this way
// once. So the error of a rank is at most the sum of that number of gradients.
//
// (Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for
// Distributed Optimization", NeurIPS 2019.) Only P and Q are sent. They are sums that are equal on
// all ranks, and so are the products. Matrices are stored row by row. Sums over a row or column are
// f32 in the order of the index; dot products of columns are f64.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trainyard::gradients {

inline constexpr uint64_t kRowInterval = 8;  // costs an eighth of one column

struct Matrix {
  size_t rows = 0;
  size_t columns = 0;
  size_t elements() const { return rows * columns; }
};

// Returns true if the thin matrices are smaller than the matrix, which is never the case for
// vectors.
constexpr bool low_rank_saves(Matrix matrix, size_t rank) {
  return rank * (matrix.rows + matrix.columns) < matrix.rows * matrix.columns;
}

// Fills the initial Q with independent columns; equal seeds give equal columns.
void first_q(std::span<float> q, uint64_t seed);
// Fills the zero columns of Q with new values; otherwise they would stay zero forever.
void revive_q(std::span<float> q, size_t rank, uint64_t seed);
// Sets the last column to the direction of a row.
void point_to_row(float* p, size_t rows, size_t rank, size_t row);
// Computes p = m q.
void times(const float* m, Matrix shape, const float* q, size_t rank, float* p);
// Computes q = m' p.
void transposed_times(const float* m, Matrix shape, const float* p, size_t rank, float* q);
// Computes m = p q'.
void product(const float* p, const float* q, Matrix shape, size_t rank, float* m);
// Computes m -= p q'.
void subtract_product(const float* p, const float* q, Matrix shape, size_t rank, float* m);
// Makes columns orthonormal by Gram-Schmidt: subtracts from each column its components along the
// previous columns, and normalises it. A column that depends on the previous ones becomes zero, and
// so does its part of the product.
void orthonormalise(float* p, size_t rows, size_t rank);

}  // namespace trainyard::gradients
