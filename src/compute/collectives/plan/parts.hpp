// Declares the helpers that the plans share: pieces, chunks, and adding steps. Private to plan/.
//
// Threads: pure functions. Units: elements.
#pragma once

#include "collectives/plan/plan.hpp"

namespace trainyard::collectives::plan {

// Returns `part` modulo `parts`, in 0 .. parts-1 also for a negative `part`.
int around(int part, int parts);
// Returns the block of a rank if the plan has blocks, else its piece of the whole.
Range block_of(const Plan& plan, int rank);
size_t largest_block(const Plan& plan);
// Returns the number of chunks of a range of `elements`; zero for an empty one.
size_t chunks(size_t elements, size_t chunk_elements);
// Returns chunk `index` of a range; empty beyond its end.
Range chunk(Range range, size_t chunk_elements, size_t index);

void add_send(Steps& steps, int peer, Range range, Use use, bool from_input = false);
void add_receive(Steps& steps, int peer, Range range);
void add_receive_into(Steps& steps, int peer, Range range);
void add_reduction(Steps& steps, Range range, int operands, int before_ours, bool last,
                   bool from_input = false, bool guarded = false);

// The rounds, steps and costs of each algorithm. A comment above its code explains the algorithm.
namespace one_shot {
size_t rounds(const Plan& plan);
void add_round(const Plan& plan, size_t round, Steps& steps);
Cost cost(const Plan& plan);
}  // namespace one_shot
namespace direct {
size_t rounds(const Plan& plan);
void add_round(const Plan& plan, size_t round, Steps& steps);
Cost cost(const Plan& plan);
}  // namespace direct
namespace ring {
size_t rounds(const Plan& plan);
void add_round(const Plan& plan, size_t round, Steps& steps);
Expression expression(const Plan& plan, size_t element);
Cost cost(const Plan& plan);
}  // namespace ring
namespace halving_doubling {
size_t rounds(const Plan& plan);
void add_round(const Plan& plan, size_t round, Steps& steps);
Expression expression(const Plan& plan, size_t element);
Cost cost(const Plan& plan);
}  // namespace halving_doubling
namespace tree {
size_t rounds(const Plan& plan);
void add_round(const Plan& plan, size_t round, Steps& steps);
Expression expression(const Plan& plan);
Cost cost(const Plan& plan);
}  // namespace tree

}  // namespace trainyard::collectives::plan
