#include <algorithm>

#include "collectives/plan/parts.hpp"

// Binomial tree
//
// Relative to the root, rank is at distance (rank - root) around the circle. In the iteration of a
// broadcast with span s = 1, 2, 4, .. every rank at a distance below s already has the data and
// sends it to the rank at its distance + s. So a rank receives once, in the iteration of the
// highest bit of its distance, and sends in all later ones. A reduce is the reverse: a rank adds
// the sums of its children to its own values, those of the largest span first, and sends the sum to
// its parent. An allreduce is a reduce to rank 0 and a broadcast from it.
//
// Chunks follow each other through the tree: a rank is done with a chunk once it has forwarded it.
//
// A barrier is by dissemination: in the iteration with span s each rank sends a byte to the rank s
// after it and receives one from the rank s before it. After all iterations each rank has heard,
// through others, from all ranks.
//
// Costs: let levels = log2(ranks) rounded up, and depth = log2(ranks) rounded down, which is the
// most one bits that the distance of a rank can have. An operation takes depth latencies (twice as
// many for an allreduce; levels for a barrier). A rank sends the data at most levels times; all
// ranks together send it ranks - 1 times (twice as often for an allreduce). There are few
// latencies, but each message carries all data: the tree suits small messages, and operations with
// a root.
namespace trainyard::collectives::plan::tree {
namespace {

size_t levels(int ranks) {
  size_t count = 0;
  while ((1 << count) < ranks) ++count;
  return count;
}

size_t depth(int ranks) {
  size_t count = 0;
  while ((2 << count) <= ranks) ++count;
  return count;
}

int distance_of(const Plan& plan) { return around(plan.rank - plan.root, plan.ranks); }

// Returns the span with which a rank at this distance reaches its parent; 0 for the root.
int own_span(int distance) {
  int span = 0;
  for (int bit = 1; bit <= distance; bit *= 2) span = bit;
  return span;
}

void add_reduce(const Plan& plan, Range part, Steps& steps) {
  const int distance = distance_of(plan);
  const int own = own_span(distance);
  int smallest = own == 0 ? 1 : own * 2;
  for (int span = 1 << levels(plan.ranks); span >= smallest; span /= 2) {
    if (distance + span >= plan.ranks) continue;
    add_receive(steps, around(plan.rank + span, plan.ranks), part);
    add_reduction(steps, part, 1, 1, plan.finishes && distance == 0 && span == 1);
  }
  if (own > 0) add_send(steps, around(plan.rank - own, plan.ranks), part, Use::reduced);
}

void add_broadcast(const Plan& plan, Range part, Steps& steps) {
  const int distance = distance_of(plan);
  const int own = own_span(distance);
  if (own > 0) {
    // A round ends when its messages have arrived, so the chunk can be forwarded in the next round.
    add_receive_into(steps, around(plan.rank - own, plan.ranks), part);
  }
}

void add_forwarding(const Plan& plan, Range part, Steps& steps) {
  const int distance = distance_of(plan);
  const int own = own_span(distance);
  for (int span = own == 0 ? 1 : own * 2; distance + span < plan.ranks; span *= 2) {
    add_send(steps, around(plan.rank + span, plan.ranks), part, Use::copied);
  }
}

Expression sum_at(int distance, const Plan& plan) {
  Expression sum{around(plan.root + distance, plan.ranks), {}};
  const int own = own_span(distance);
  for (int span = 1 << levels(plan.ranks); span > own; span /= 2) {
    if (distance + span >= plan.ranks) continue;
    Expression longer;
    longer.parts.push_back(sum_at(distance + span, plan));
    longer.parts.push_back(std::move(sum));
    sum = std::move(longer);
  }
  return sum;
}

}  // namespace

size_t rounds(const Plan& plan) {
  if (plan.operation == Operation::barrier) return levels(plan.ranks);
  const size_t all = chunks(plan.elements, plan.chunk_elements);
  switch (plan.operation) {
    case Operation::reduce:
      return all;
    case Operation::broadcast:
      return all == 0 ? 0 : all + 1;
    default:
      return all == 0 ? 0 : 2 * all + 1;
  }
}

void add_round(const Plan& plan, size_t round, Steps& steps) {
  if (plan.operation == Operation::barrier) {
    const int span = 1 << round;
    add_send(steps, around(plan.rank + span, plan.ranks), {0, 1}, Use::copied);
    return add_receive_into(steps, around(plan.rank - span, plan.ranks), {1, 2});
  }
  const size_t all = chunks(plan.elements, plan.chunk_elements);
  const auto part = [&](size_t index) {
    return chunk({0, plan.elements}, plan.chunk_elements, index);
  };
  if (plan.operation == Operation::allreduce && round < all)
    return add_reduce(plan, part(round), steps);
  if (plan.operation == Operation::allreduce) round -= all;
  if (plan.operation == Operation::reduce) return add_reduce(plan, part(round), steps);
  // A chunk that arrives in one round is forwarded in the next, while its successor arrives.
  if (round > 0) add_forwarding(plan, part(round - 1), steps);
  if (round < all) add_broadcast(plan, part(round), steps);
}

Expression expression(const Plan& plan) { return sum_at(0, plan); }

Cost cost(const Plan& plan) {
  const size_t most = levels(plan.ranks);
  const size_t deep = depth(plan.ranks);
  const size_t others = size_t(plan.ranks - 1);
  switch (plan.operation) {
    case Operation::barrier:
      return {most, most, most * size_t(plan.ranks), 0};
    case Operation::broadcast:
      return {deep, most * plan.elements, others * plan.elements, 0};
    case Operation::reduce:
      return {deep, plan.elements, others * plan.elements, most * plan.elements};
    default:
      return {2 * deep, most * plan.elements, 2 * others * plan.elements, most * plan.elements};
  }
}

}  // namespace trainyard::collectives::plan::tree
