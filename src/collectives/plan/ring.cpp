#include "base/check.hpp"
#include "collectives/plan/plan.hpp"

namespace trainyard::collectives::plan {
namespace {

// part 0 .. parts-1, for a part that may have stepped outside by less than one turn.
int around(int part, int parts) { return (part % parts + parts) % parts; }

void add(Steps& steps, Action action, int peer, Range range) {
  if (range.size() > 0) steps.push_back({action, peer, range});
}

}  // namespace

Range piece(size_t elements, int part, int parts) {
  CHECK(parts > 0 && part >= 0 && part < parts, "a piece is one of its parts");
  // The first `longer` pieces have one element more. No product that could overflow.
  const size_t shorter_size = elements / size_t(parts);
  const size_t longer = elements % size_t(parts);
  const size_t index = size_t(part);
  const size_t begin = index * shorter_size + (index < longer ? index : longer);
  return {begin, begin + shorter_size + (index < longer ? 1 : 0)};
}

// Ring allreduce
//
// The `ranks` stand in a circle; each talks to the next and listens to the previous one. The data is cut in
// as many pieces as there are ranks, and every piece walks the circle twice, all of them at once.
//
// First walk (reduce): in round r, rank sends piece (rank - r) and receives piece (rank - r - 1), to which it
// adds its own values. Piece p sets out at rank p, so its sum is ((x[p] + x[p+1]) + x[p+2]) + .. around the
// circle: the order of additions depends on ranks, elements and the element's place only. After ranks - 1
// rounds rank holds the finished piece (rank + 1).
//
// Second walk (gather): in round r, rank sends the finished piece (rank + 1 - r) and receives piece (rank -
// r), which it only copies. After ranks - 1 rounds all ranks hold the same bytes: nobody added anything
// twice, so they are equal bit for bit.
//
// Costs, with elements a multiple of ranks:
//   rounds            2 * (ranks - 1)
//   sent by a rank    2 * (ranks - 1) / ranks * elements      (no algorithm without help from the network
//   sends less) additions         (ranks - 1) / ranks * elements by a rank
// and over all ranks exactly 2 * (ranks - 1) * elements are sent, whatever the sizes of the pieces. Small
// messages pay 2 * (ranks - 1) latencies: that is what the ring is bad at.
Steps ring_allreduce(int rank, int ranks, size_t elements) {
  CHECK(ranks > 0 && rank >= 0 && rank < ranks, "a rank is one of the ranks");
  const int next = around(rank + 1, ranks);
  const int previous = around(rank - 1, ranks);
  const auto part = [&](int index) { return piece(elements, around(index, ranks), ranks); };

  Steps steps;
  for (int round = 0; round < ranks - 1; ++round) {
    add(steps, Action::send, next, part(rank - round));
    add(steps, Action::receive, previous, part(rank - round - 1));
    add(steps, Action::reduce, -1, part(rank - round - 1));
  }
  for (int round = 0; round < ranks - 1; ++round) {
    add(steps, Action::send, next, part(rank + 1 - round));
    add(steps, Action::receive, previous, part(rank - round));
    add(steps, Action::copy, -1, part(rank - round));
  }
  return steps;
}

int ring_first_rank(int ranks, size_t elements, size_t element) {
  for (int part = 0; part < ranks; ++part) {
    if (element < piece(elements, part, ranks).end) return part;
  }
  CHECK(false, "an element lies in one of the pieces");
  return 0;
}

// Ring all-gather
//
// The second walk alone: in round r, rank passes on block (rank - r), its own first, and receives block (rank
// - r - 1).
//
// Costs: ranks - 1 rounds; a rank sends every block but the next rank's own, so over all ranks each block is
// sent ranks - 1 times.
Steps ring_all_gather(int rank, std::span<const Range> blocks) {
  const int ranks = int(blocks.size());
  CHECK(ranks > 0 && rank >= 0 && rank < ranks, "a rank is one of the ranks");
  const int next = around(rank + 1, ranks);
  const int previous = around(rank - 1, ranks);

  Steps steps;
  for (int round = 0; round < ranks - 1; ++round) {
    const Range passed = blocks[size_t(around(rank - round, ranks))];
    const Range received = blocks[size_t(around(rank - round - 1, ranks))];
    add(steps, Action::send, next, passed);
    add(steps, Action::receive, previous, received);
    add(steps, Action::copy, -1, received);
  }
  return steps;
}

}  // namespace trainyard::collectives::plan
