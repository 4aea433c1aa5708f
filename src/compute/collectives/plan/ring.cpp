#include <algorithm>

#include "collectives/plan/parts.hpp"

// Ring
//
// The ranks form a ring; each sends to the next and receives from the previous one. The data is cut
// into as many pieces as there are ranks, and all pieces travel around the ring at once.
//
// allreduce, first pass (reduce): in iteration t, rank sends piece (rank - t) and receives piece
// (rank - t - 1), to which it adds its own values. Piece p starts at rank p, so its sum is ((x[p] +
// x[p+1]) + x[p+2]) + .. around the ring: the order of additions depends only on ranks, elements
// and the position of the element. After ranks - 1 iterations rank holds the finished piece (rank +
// 1). Second pass (gather): in iteration t, rank sends the finished piece (rank + 1 - t) and
// receives piece (rank - t). All ranks then hold the same bytes, since each sum was computed only
// once.
//
// reduce_scatter is the first pass, with every piece starting one rank later so that it ends at its
// own rank: piece p starts at rank p + 1. all_gather is the second pass, in which each rank first
// sends its own block.
//
// A piece may be split into chunks: an iteration then has a round for each chunk. A round sends the
// next chunk before it waits for its own, so the wire carries one chunk while another is added. A
// round sends the chunk of the round that is `ahead` rounds later. Its values are complete by then,
// since a chunk depends only on the same chunk of the previous iteration.
//
// Costs of an allreduce: 2 * (ranks - 1) latencies. A rank sends every piece twice, except for two
// pieces that it sends once: 2 * (ranks - 1) / ranks * elements when `ranks` divides them (no
// algorithm sends less without help from the network). All ranks together send exactly 2 * (ranks -
// 1) * elements, whatever the sizes of the pieces. A rank adds every piece but one. reduce_scatter
// and all_gather cost half: (ranks - 1) latencies; a rank sends all blocks but its own
// (reduce_scatter) or but that of the next rank (all_gather). Small messages pay for the latencies:
// the ring is slow for them.
namespace trainyard::collectives::plan::ring {
namespace {

// One chunk is on the wire while another waits at the receiver; more chunks would only wait.
constexpr size_t kAheadMax = 2;

struct Iteration {
  int sent;      // index of the piece
  int received;  // index of the piece
  bool reduces;
  bool last;
};

size_t iterations(const Plan& plan) {
  return size_t(plan.ranks - 1) * (plan.operation == Operation::allreduce ? 2 : 1);
}

Iteration iteration_of(const Plan& plan, int iteration) {
  const int others = plan.ranks - 1;
  const int rank = plan.rank;
  switch (plan.operation) {
    case Operation::reduce_scatter:
      return {rank - iteration - 1, rank - iteration - 2, true, iteration == others - 1};
    case Operation::all_gather:
      return {rank - iteration, rank - iteration - 1, false, false};
    default:
      if (iteration < others)
        return {rank - iteration, rank - iteration - 1, true, iteration == others - 1};
      return {rank + 1 - (iteration - others), rank - (iteration - others), false, false};
  }
}

size_t chunks_of(const Plan& plan) { return chunks(largest_block(plan), plan.chunk_elements); }

}  // namespace

size_t rounds(const Plan& plan) { return iterations(plan) * chunks_of(plan); }

void add_round(const Plan& plan, size_t round, Steps& steps) {
  const size_t cut = chunks_of(plan);
  const size_t ahead = std::min(kAheadMax, cut - 1);
  const auto part = [&](int index, size_t of_round) {
    return chunk(block_of(plan, around(index, plan.ranks)), plan.chunk_elements, of_round % cut);
  };
  const size_t sends_end = std::min(ring::rounds(plan), round + ahead + 1);
  for (size_t sent = round == 0 ? 0 : round + ahead; sent < sends_end; ++sent) {
    const Iteration iteration = iteration_of(plan, int(sent / cut));
    add_send(steps, around(plan.rank + 1, plan.ranks), part(iteration.sent, sent),
             iteration.reduces ? Use::reduced : Use::copied);
  }
  const Iteration iteration = iteration_of(plan, int(round / cut));
  const Range received = part(iteration.received, round);
  const int previous = around(plan.rank - 1, plan.ranks);
  if (iteration.reduces) {
    add_receive(steps, previous, received);
    add_reduction(steps, received, 1, 1, iteration.last && plan.finishes);
  } else {
    add_receive_into(steps, previous, received);
  }
}

Expression expression(const Plan& plan, size_t element) {
  int first = 0;
  while (element >= block_of(plan, first).end) ++first;
  if (plan.operation == Operation::reduce_scatter) ++first;
  Expression sum{around(first, plan.ranks), {}};
  for (int k = 1; k < plan.ranks; ++k) {
    Expression longer;
    longer.parts.push_back(std::move(sum));
    longer.parts.push_back({around(first + k, plan.ranks), {}});
    sum = std::move(longer);
  }
  return sum;
}

Cost cost(const Plan& plan) {
  const size_t others = size_t(plan.ranks - 1);
  size_t least_kept = plan.elements * 2;
  size_t smallest = plan.elements;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const size_t size = block_of(plan, rank).size();
    smallest = std::min(smallest, size);
    least_kept = std::min(least_kept, size + block_of(plan, around(rank + 1, plan.ranks)).size());
  }
  const size_t once = others * plan.elements;
  switch (plan.operation) {
    case Operation::reduce_scatter:
      return {others, plan.elements - smallest, once, plan.elements - smallest};
    case Operation::all_gather:
      return {others, plan.elements - smallest, once, 0};
    default:
      return {2 * others, 2 * plan.elements - least_kept, 2 * once, plan.elements - smallest};
  }
}

}  // namespace trainyard::collectives::plan::ring
