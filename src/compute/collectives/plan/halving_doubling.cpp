#include <algorithm>

#include "base/check.hpp"
#include "collectives/plan/parts.hpp"

// Recursive halving and doubling
//
// Let `paired` be the largest power of two that is not above ranks, and `left_over` the number of
// other ranks. Among the ranks below 2 * left_over, each odd one first sends everything to the even
// one before it, which adds it to its own values. That leaves `paired` ranks, which are renumbered
// (slot_of).
//
// Halving: in the iteration of bit b = 1, 2, 4, .. a rank and the one whose number differs in that
// bit hold sums of the same range. The rank without the bit keeps the lower half, the other the
// upper half. Each sends the half that it does not keep, and adds what it receives to the half that
// it keeps. After log2(paired) iterations every such rank holds a finished piece. Doubling: the
// same pairs exchange what they hold, in reverse order. At the end the even ranks send the result
// to the odd ones.
//
// Most bytes are sent in the first iteration, between neighbours, which are the most likely to
// share a host.
//
// Costs: 2 * log2(paired) latencies, and two more when ranks are left over. Such a rank sends 2 *
// (paired - 1) / paired * elements when `paired` divides them; the even rank of a pair with a
// left-over one sends all elements once more. All ranks together send exactly 2 * (ranks - 1) *
// elements. That is as few bytes as the ring, with far fewer latencies; but half of all bytes are
// sent at once, which does not overlap with adding them.
namespace trainyard::collectives::plan::halving_doubling {
namespace {

struct Slots {
  int paired = 1;
  int bits = 0;
  int left_over = 0;

  int rank_of(int slot) const { return slot < left_over ? 2 * slot : slot + left_over; }
  // Returns -1 for a rank that is left over.
  int slot_of(int rank) const {
    if (rank >= 2 * left_over) return rank - left_over;
    return rank % 2 == 0 ? rank / 2 : -1;
  }
};

Slots slots(int ranks) {
  Slots all;
  while (all.paired * 2 <= ranks) {
    all.paired *= 2;
    ++all.bits;
  }
  all.left_over = ranks - all.paired;
  return all;
}

// Returns the range of a rank after `iterations` iterations of halving.
Range held(const Plan& plan, int slot, int iterations) {
  Range range{0, plan.elements};
  for (int iteration = 0; iteration < iterations; ++iteration) {
    const Range lower = piece(range.size(), 0, 2);
    const size_t middle = range.begin + lower.end;
    range = (slot >> iteration & 1) == 0 ? Range{range.begin, middle} : Range{middle, range.end};
  }
  return range;
}

Expression sum_at(const Slots& all, int slot, int iterations) {
  if (iterations == 0) {
    if (slot >= all.left_over) return {all.rank_of(slot), {}};
    Expression pair;
    pair.parts.push_back({all.rank_of(slot) + 1, {}});
    pair.parts.push_back({all.rank_of(slot), {}});
    return pair;
  }
  Expression sum;
  sum.parts.push_back(sum_at(all, slot ^ 1 << (iterations - 1), iterations - 1));
  sum.parts.push_back(sum_at(all, slot, iterations - 1));
  return sum;
}

}  // namespace

size_t rounds(const Plan& plan) {
  if (plan.elements == 0) return 0;
  return 2 * size_t(slots(plan.ranks).bits) + 2;
}

void add_round(const Plan& plan, size_t round, Steps& steps) {
  const Slots all = slots(plan.ranks);
  const int slot = all.slot_of(plan.rank);
  const Range everything{0, plan.elements};
  const bool first = round == 0;
  const bool last = round + 1 == halving_doubling::rounds(plan);
  if (first || last) {
    if (plan.rank >= 2 * all.left_over) return;
    if (first && slot < 0) add_send(steps, plan.rank - 1, everything, Use::reduced);
    if (first && slot >= 0) {
      add_receive(steps, plan.rank + 1, everything);
      add_reduction(steps, everything, 1, 1, false);
    }
    if (last && slot < 0) add_receive_into(steps, plan.rank - 1, everything);
    if (last && slot >= 0) add_send(steps, plan.rank + 1, everything, Use::copied);
    return;
  }
  if (slot < 0) return;
  const int iteration = int(round) - 1;
  if (iteration < all.bits) {
    const int peer_slot = slot ^ 1 << iteration;
    const int peer = all.rank_of(peer_slot);
    const Range kept = held(plan, slot, iteration + 1);
    add_send(steps, peer, held(plan, peer_slot, iteration + 1), Use::reduced);
    add_receive(steps, peer, kept);
    add_reduction(steps, kept, 1, 1, plan.finishes && iteration + 1 == all.bits);
  } else {
    const int undone = 2 * all.bits - 1 - iteration;
    const int peer_slot = slot ^ 1 << undone;
    const int peer = all.rank_of(peer_slot);
    add_send(steps, peer, held(plan, slot, undone + 1), Use::copied);
    add_receive_into(steps, peer, held(plan, peer_slot, undone + 1));
  }
}

Expression expression(const Plan& plan, size_t element) {
  const Slots all = slots(plan.ranks);
  for (int slot = 0; slot < all.paired; ++slot) {
    const Range range = held(plan, slot, all.bits);
    if (element >= range.begin && element < range.end) return sum_at(all, slot, all.bits);
  }
  CHECK(false, "each element lies in the range of a slot");
  return {};
}

Cost cost(const Plan& plan) {
  const Slots all = slots(plan.ranks);
  size_t sent = 0;
  size_t reduced = 0;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const int slot = all.slot_of(rank);
    if (slot < 0) continue;
    // While halving, a rank sends all that it does not hold at the end; while doubling, it sends
    // its current range.
    const size_t kept = held(plan, slot, all.bits).size();
    size_t own = plan.elements - kept;
    size_t added = 0;
    for (int iteration = 0; iteration < all.bits; ++iteration) {
      own += held(plan, slot, iteration + 1).size();
      added += held(plan, slot, iteration + 1).size();
    }
    if (slot < all.left_over) {
      own += plan.elements;
      added += plan.elements;
    }
    sent = std::max(sent, own);
    reduced = std::max(reduced, added);
  }
  return {2 * size_t(all.bits) + (all.left_over > 0 ? 2 : 0),
          std::max(sent, all.left_over > 0 ? plan.elements : 0),
          2 * size_t(plan.ranks - 1) * plan.elements, reduced};
}

}  // namespace trainyard::collectives::plan::halving_doubling
