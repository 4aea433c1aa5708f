#include <algorithm>

#include "collectives/plan/parts.hpp"

// One shot
//
//   allreduce   each rank sends everything to all others; then each rank reduces the values of all
//               ranks in rank order.
//   reduce      each rank sends everything to the root, which reduces them in rank order.
//   broadcast   the root sends everything to all others.
//   barrier     each rank sends a byte to all others.
//
// All ranks of an allreduce do the same additions in the same order, so they get the same bits. A
// sum is rounded only at its end, so 16-bit values are rounded once.
//
// Costs: one latency, whatever the number of ranks; ranks - 1 times the elements, sent by each rank
// (allreduce) or by all ranks together (reduce, broadcast). Where a latency costs more than the
// bytes, nothing is faster. Where ranks share memory, sending to all ranks is one write.
namespace trainyard::collectives::plan::one_shot {

size_t rounds(const Plan& plan) {
  return plan.operation == Operation::barrier ? 1 : chunks(plan.elements, plan.chunk_elements);
}

void add_round(const Plan& plan, size_t round, Steps& steps) {
  if (plan.operation == Operation::barrier) {
    add_send(steps, kAllRanks, {0, 1}, Use::copied);
    for (int peer = 0; peer < plan.ranks; ++peer) {
      if (peer != plan.rank) add_receive_into(steps, peer, {1, 2});
    }
    return;
  }
  const Range part = chunk({0, plan.elements}, plan.chunk_elements, round);
  if (plan.operation == Operation::broadcast) {
    if (plan.rank == plan.root) {
      add_send(steps, kAllRanks, part, Use::copied);
    } else {
      add_receive_into(steps, plan.root, part);
    }
    return;
  }
  if (plan.operation == Operation::reduce && plan.rank != plan.root)
    return add_send(steps, plan.root, part, Use::reduced, true);
  if (plan.operation == Operation::allreduce) add_send(steps, kAllRanks, part, Use::reduced, true);
  for (int peer = 0; peer < plan.ranks; ++peer) {
    if (peer != plan.rank) add_receive(steps, peer, part);
  }
  // When input and output are the same buffer, values that others still read must not be
  // overwritten.
  const bool guarded = plan.operation == Operation::allreduce;
  add_reduction(steps, part, plan.ranks - 1, plan.rank, plan.finishes, true, guarded);
}

Cost cost(const Plan& plan) {
  const size_t others = size_t(plan.ranks - 1);
  switch (plan.operation) {
    case Operation::barrier:
      return {1, others, others * size_t(plan.ranks), 0};
    case Operation::broadcast:
      return {1, others * plan.elements, others * plan.elements, 0};
    case Operation::reduce:
      return {1, plan.elements, others * plan.elements, others * plan.elements};
    default:
      return {1, others * plan.elements, others * size_t(plan.ranks) * plan.elements,
              others * plan.elements};
  }
}

}  // namespace trainyard::collectives::plan::one_shot
