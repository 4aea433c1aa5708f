// Decides which ready tensors are reduced together, and in which order.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "gradients/fusion/request.hpp"

namespace trainyard::gradients {

// One collective: its tensors lie one after the other in the fusion buffer.
struct Batch {
  std::vector<Agreement> parts;
  bool operator==(const Batch&) const = default;
};

// Returns the bytes of the parts of all ranks together.
uint64_t bytes_of(const Agreement& agreement);

struct Fusing {
  uint64_t fusion_bytes = 0;  // of a batch of more than one
  uint64_t tensor_bytes_max =
      ~uint64_t{0};          // of a tensor that is copied to be fused; larger ones go by themselves
  bool groups_only = false;  // nothing but members of one group is fused
};

// Larger priorities first, else as they come; what is fused with an earlier one moves up to it.
std::vector<Batch> batches_of(std::vector<Agreement> ready, const Fusing& fusing);

}  // namespace trainyard::gradients
