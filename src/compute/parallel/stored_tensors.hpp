// Converts libtorch's tensors to and from tensors of a checkpoint.
//
// Threads: pure functions. Errors: corrupt, naming the tensor.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "checkpoint/safetensors.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

// Adds views of the tensors, which must outlive `contents`.
// Requires: contiguous tensors of f32 in ordinary memory.
void add_tensors(const std::vector<NamedTensor>& tensors, checkpoint::Contents& contents);

// Copies the stored values into the tensors. Other tensors in `contents` are ignored. Errors:
// corrupt, if a requested tensor is missing or has another type or shape; then no tensor is
// changed.
Result<void> assign_tensors(const checkpoint::Contents& contents,
                            const std::vector<NamedTensor>& tensors);

}  // namespace trainyard::parallel
