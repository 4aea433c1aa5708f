// Decides which ready tensors are reduced together, and in which order.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "gradients/fusion/request.hpp"

namespace trainyard::gradients {

// A Batch is one collective operation. Its tensors follow each other in the fusion buffer.
struct Batch {
  std::vector<Agreement> parts;
  bool operator==(const Batch&) const = default;
};

// Returns the bytes of the agreement's tensor on all ranks together.
uint64_t bytes_of(const Agreement& agreement);

struct FusionLimits {
  uint64_t fusion_bytes = 0;  // of a batch of several tensors
  // of a tensor that is copied to be fused; larger tensors are not fused
  uint64_t tensor_bytes_max = ~uint64_t{0};
  bool groups_only = false;  // fuses only the members of one group
};

// Orders tensors by descending priority, then by arrival. A tensor that is fused with an earlier
// one moves up to it.
std::vector<Batch> batches_of(std::vector<Agreement> ready, const FusionLimits& fusing);

}  // namespace trainyard::gradients
