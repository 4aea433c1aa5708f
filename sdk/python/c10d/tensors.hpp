// Describes torch's tensors as buffer views, and torch's reductions as reductions of a Group.
//
// Threads: plain functions. Errors: unsupported tensors throw c10::Error, which becomes a
// RuntimeError with the reason in Python; combine_bits, sum_sparse and allreduce_now return errors
// of a Group. Lifetime: a buffer view points into the tensor, which must outlive it.
#pragma once

#include <torch/types.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "collectives/group.hpp"

namespace trainyard::sdk {

using Tensors = std::vector<at::Tensor>;

// Named is a group that runs an operation of torch. All calls get the name of that operation.
struct Named {
  collectives::Group& group;
  const std::string& name;
  Result<void> run(collectives::Call call) const {
    call.reducing.name = name;
    return group.run(call);
  }
};

// Returns the type of a tensor, for messages.
std::string kind_of(const at::Tensor& tensor);
// Returns "3 Float[6], ": the number of tensors, and the type and shape of the first. Empty without
// tensors.
std::string kind_of(const Tensors& tensors);
// Returns a view of the elements, for reductions. A complex number counts as two real numbers,
// which is valid for sums and averages.
collectives::BufferView buffer_view(const at::Tensor& tensor);
// Returns a view of the bytes, for operations that only move them.
collectives::BufferView bytes(const at::Tensor& tensor);
size_t bytes_of(const at::Tensor& tensor);
std::vector<size_t> bytes_of(const Tensors& tensors);

void expect_ours(const at::Tensor& tensor);
at::Tensor& only(Tensors& tensors);
// Checks the types, because operations that move bytes do not.
void expect_one_type(const at::Tensor& input, const at::Tensor& output);

template <class List>
auto& only_list(List& lists) {
  TORCH_CHECK(lists.size() == 1, "trainyard: pass one list of tensors per rank, not ",
              lists.size());
  return lists[0];
}

// A Destination is a contiguous buffer for the result of an operation: the tensor itself, or a copy
// that copy_back() writes to the tensor.
struct Destination {
  explicit Destination(const at::Tensor& tensor) : tensor(tensor), contiguous(tensor.contiguous()) {
    expect_ours(tensor);
  }
  void copy_back() const {
    if (!contiguous.is_same(tensor)) tensor.copy_(contiguous);
  }
  at::Tensor tensor;
  at::Tensor contiguous;
};

// joined() concatenates tensors, flat_buffer_for() allocates a buffer of their total size, and
// part() copies its parts to the tensors.
at::Tensor joined(const Tensors& tensors);
at::Tensor flat_buffer_for(const Tensors& tensors);
void part(const at::Tensor& flat, const Tensors& tensors);

bool is_bitwise(const c10d::ReduceOp& op);
// Returns the options of a reduction. For bitwise operations, only checks the type.
collectives::ReduceOptions reducing_or_bits(const c10d::ReduceOp& op, const at::Tensor& tensor);
// Runs a bitwise reduction: gathers the values of all ranks, and each rank combines them.
Result<void> combine_bits(const Named& named, const at::Tensor& tensor,
                          c10d::ReduceOp::RedOpType op);
// Sums a sparse tensor in place: gathers the rows of all ranks, and adds rows of equal indices in
// rank order.
Result<void> sum_sparse(const Named& named, at::Tensor tensor);
Result<void> allreduce_now(const Named& named, const at::Tensor& tensor, const c10d::ReduceOp& op,
                           const collectives::ReduceOptions& reducing);

}  // namespace trainyard::sdk
