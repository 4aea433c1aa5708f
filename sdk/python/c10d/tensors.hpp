// Tensors of torch as the numbers and bytes of a group, and torch's reductions as ours.
//
// Threads: plain functions. Errors: what a group cannot take is a c10::Error, which Python sees as
// a RuntimeError that says why; combine_bits and allreduce_now: what a Group says.
// Lifetime: numbers and bytes point into the tensor, which the caller keeps.
#pragma once

#include <torch/types.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "collectives/group.hpp"

namespace trainyard::sdk {

using Tensors = std::vector<at::Tensor>;

// A group while it carries out an operation of torch's, whose name is that of all its calls.
struct Named {
  collectives::Group& group;
  const std::string& name;
  Result<void> run(collectives::Call call) const {
    call.reducing.name = name;
    return group.run(call);
  }
};

// Its type in a word.
std::string kind_of(const at::Tensor& tensor);
// "3 Float[6], ": how many, of what the first is. Empty when there are none.
std::string kind_of(const Tensors& tensors);
// For adding: by type. A complex number is two of its parts, which sums and averages may take one
// by one.
collectives::BufferView numbers(const at::Tensor& tensor);
// For moving: bytes, whatever they mean.
collectives::BufferView bytes(const at::Tensor& tensor);
size_t bytes_of(const at::Tensor& tensor);
std::vector<size_t> bytes_of(const Tensors& tensors);

void expect_ours(const at::Tensor& tensor);
at::Tensor& only(Tensors& tensors);
// Bytes of one type that become another's would go unnoticed.
void expect_one_type(const at::Tensor& input, const at::Tensor& output);

template <class List>
auto& only_list(List& lists) {
  TORCH_CHECK(lists.size() == 1, "trainyard: one list of tensors a rank, not ", lists.size());
  return lists[0];
}

// Where an operation may write: the tensor itself, or a place that is copied into it afterwards.
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

// Several tensors end to end; room for them; and back again.
at::Tensor joined(const Tensors& tensors);
at::Tensor room_for(const Tensors& tensors);
void part(const at::Tensor& flat, const Tensors& tensors);

bool is_bitwise(const c10d::ReduceOp& op);
// How the tensor's numbers are combined; of bits, nothing but that they can be.
collectives::ReduceOptions reducing_or_bits(const c10d::ReduceOp& op, const at::Tensor& tensor);
// Bits are combined here: everyone gets everyone's, so all compute the same.
Result<void> combine_bits(const Named& named, const at::Tensor& tensor,
                          c10d::ReduceOp::RedOpType op);
// Of a sparse tensor, in place: everyone's rows, and those at one place added up, in the order of
// the ranks.
Result<void> sum_sparse(const Named& named, at::Tensor tensor);
Result<void> allreduce_now(const Named& named, const at::Tensor& tensor, const c10d::ReduceOp& op,
                           const collectives::ReduceOptions& reducing);

}  // namespace trainyard::sdk
