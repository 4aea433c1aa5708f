// Compares what the ranks of a group pass to a strategy before it starts.
//
// Threads: call from anywhere. Errors: of the group; conflict, naming a rank that differs from
// rank 0.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel {

// Returns an error on every rank when a rank has another number of parameters, or another shape.
Result<void> compare_shapes(const std::vector<at::Tensor>& parameters, collectives::Group& group);

// Requires: leaves of f32 in ordinary memory, contiguous, that require gradients.
void check_parameters(const std::vector<at::Tensor>& parameters);

}  // namespace trainyard::parallel
