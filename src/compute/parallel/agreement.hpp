// Compares the parameters that the ranks of a group pass to a strategy, before it starts.
//
// Threads: call from any thread. Errors: those of the group; conflict, naming a rank that differs
// from rank 0.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel {

// Returns an error on every rank if the number of parameters or a shape differs between ranks.
Result<void> compare_shapes(const std::vector<at::Tensor>& parameters, collectives::Group& group);

// Checks that the parameters are contiguous leaf tensors of f32 in ordinary memory, with
// requires_grad.
void check_parameters(const std::vector<at::Tensor>& parameters);

}  // namespace trainyard::parallel
