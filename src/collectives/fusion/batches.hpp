// Which ready tensors are carried out together, and in which order.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/fusion/request.hpp"

namespace trainyard::collectives::fusion {

// One collective: its tensors lie one after the other in the fusion buffer.
struct Batch {
  std::vector<Agreement> parts;
  bool operator==(const Batch&) const = default;
};

// Of all ranks' parts together.
uint64_t bytes_of(const Agreement& agreement);

// Larger priorities first, else as they come; what is fused with an earlier one moves up to it. A tensor that
// is larger than fusion_bytes is alone. With groups_only nothing but members of one group is fused.
std::vector<Batch> batches_of(std::vector<Agreement> ready, uint64_t fusion_bytes, bool groups_only);

}  // namespace trainyard::collectives::fusion
