// Divides linear layers over the ranks of a group: each rank holds a part of every weight and
// computes a part of every product.
//
//   TensorGroup tensor(mesh->tensor());
//   at::Tensor hidden = column_linear(input, weight_1, bias_1, tensor);   // own columns of hidden
//   at::Tensor output = row_linear(hidden.relu(), weight_2, bias_2, tensor);
//   loss(output).backward();
//   TRY(tensor.result());                            // before the gradients are used
//
// For n ranks, with weights W [out, in] of the whole layer:
//   column_linear  weight: W's rows range_of(out), bias: the same part. The input is whole on every
//                  rank, the output is this rank's columns. Backward: one allreduce of the input's
//                  gradient.
//   row_linear     weight: W's columns range_of(in), bias: whole. The input is this rank's columns,
//                  the output is whole on every rank. Forward: one allreduce of the output.
//   vocabulary_embedding   weight: the table's rows range_of(vocabulary). Indices and output are
//                  whole on every rank. Forward: one allreduce of the output.
// A column and then a row layer, as in the example, divide a perceptron or an attention with one
// allreduce forward and one backward. gather_columns makes a divided output whole.
//
// Whole tensors and their gradients are equal on all ranks, bit for bit. They differ from those of
// one process by the order of the sums over `in` (rows) or over ranks: a relative 1e-6 or so.
//
// Memory: 1 / n of the weights, and of the gradients and the state of the optimizer with them.
// Traffic of one rank for x bytes: an allreduce sends 2 (n - 1) / n x (small ones, which are sent
// to all at once, (n - 1) x), a gather (n - 1) / n x.
//
// Threads: as the group; all ranks call the same functions in the same order. Errors: those of the
// group, stored in the TensorGroup, since the backward pass returns none. After the first error all
// results are undefined. Lifetime: the TensorGroup outlives the backward pass.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "collectives/group.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel {

class TensorGroup {
 public:
  explicit TensorGroup(collectives::Group& group) : group_(group) {}
  TensorGroup(const TensorGroup&) = delete;
  TensorGroup& operator=(const TensorGroup&) = delete;

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  // Returns the first error of an operation.
  const Result<void>& result() const { return result_; }

  // Returns the sum over the ranks, without gradients.
  at::Tensor sum(const at::Tensor& values);
  // Returns the columns (last dimension) of all ranks, without gradients. `columns` is their total
  // number; each rank has its range_of.
  at::Tensor gather(const at::Tensor& own, int64_t columns);

 private:
  collectives::Group& group_;
  Result<void> result_ = ok();
};

// The part of a dimension that a rank holds. Dimensions are divided as evenly as possible; the
// first ranks hold one more.
struct TensorRange {
  int64_t begin = 0, count = 0;
};
TensorRange range_of(int64_t extent, int rank, int ranks);

// Compute the layers described above, with gradients. `bias` may be undefined.
at::Tensor column_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         TensorGroup& group);
at::Tensor row_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                      TensorGroup& group);
// Requires: 0 <= indices < vocabulary.
at::Tensor vocabulary_embedding(const at::Tensor& indices, const at::Tensor& weight,
                                int64_t vocabulary, TensorGroup& group);
// Returns the columns of all ranks; in the backward pass, each rank gets its part of the gradient.
at::Tensor gather_columns(const at::Tensor& own, int64_t columns, TensorGroup& group);
// Returns this rank's columns of a whole tensor; in the backward pass, the gradient is gathered.
at::Tensor own_columns(const at::Tensor& whole, TensorGroup& group);

}  // namespace trainyard::parallel
