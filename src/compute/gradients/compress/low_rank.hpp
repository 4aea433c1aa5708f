// Approximates a matrix by the product of two thin ones, with one step of power iteration from the result of the last step.
//
//   M, rows x columns, of one rank: its gradient and its earlier error       Q, columns x r, of the step before
//   P = average over ranks of M Q                                           made orthonormal, column by column
//   Q_own = M' P;  Q = average over ranks of Q_own
//   every rank gets P Q';  its error is M - P Q_own', added to the next M
//
// Errors in directions in which the ranks cancel out never appear in P. To keep them from growing forever, every
// row_interval steps the last column of P is the direction of one row: that row is sent exactly and has no error. After
// row_interval x rows steps each row was sent so, which bounds the error of a rank by as many gradients.
//
// (Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization",
// NeurIPS 2019.) P and Q are the only bytes that travel, and come from sums that are equal on all ranks; so are the
// products. Matrices are row after row; sums over a row or column are f32 in the order of the index, dot products of
// columns are f64.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trainyard::gradients {

inline constexpr uint64_t row_interval = 8;  // an eighth of one column's worth

struct Matrix {
  size_t rows = 0;
  size_t columns = 0;
  size_t elements() const { return rows * columns; }
};

// Whether the thin matrices are smaller than the matrix. Vectors never are.
constexpr bool low_rank_saves(Matrix matrix, size_t rank) {
  return rank * (matrix.rows + matrix.columns) < matrix.rows * matrix.columns;
}

// Fills the first Q with independent columns; equal seeds give equal columns.
void first_q(std::span<float> q, uint64_t seed);
// Fills the zero columns of Q again, which would otherwise stay zero forever.
void revive_q(std::span<float> q, size_t rank, uint64_t seed);
// The last column becomes the direction of a row.
void point_to_row(float* p, size_t rows, size_t rank, size_t row);
// p = m q
void times(const float* m, Matrix shape, const float* q, size_t rank, float* p);
// q = m' p
void transposed_times(const float* m, Matrix shape, const float* p, size_t rank, float* q);
// m = p q'
void product(const float* p, const float* q, Matrix shape, size_t rank, float* m);
// m -= p q'
void subtract_product(const float* p, const float* q, Matrix shape, size_t rank, float* m);
// Gram-Schmidt: each column loses its parts along those before it, and gets length 1. One that hardly differs from
// them becomes zero, and with it its part of the product.
void orthonormalise(float* p, size_t rows, size_t rank);

}  // namespace trainyard::gradients
