#include <algorithm>

#include "base/check.hpp"
#include "collectives/plan/parts.hpp"

// Direct
//
//   reduce_scatter  each rank sends every other rank its block; each rank reduces the blocks that
//                   it receives, in rank order.
//   all_gather      each rank sends its block to all others.
//   allreduce       both in sequence, chunk by chunk: each chunk has a piece for each rank.
//   gather, scatter, all_to_all: each block is sent directly to its destination.
//
// One rank computes a sum and rounds it once, at its end; the others receive its bits. The order is
// 0, 1, 2, .. for every element.
//
// Chunks overlap: while chunk k is reduced, the inputs of chunk k + 1 are being sent and the
// results of chunk k - 1 received. The last chunk comes first: the end of the buffer was written
// last and is still in the caches. The beginning is in the caches when the caller reads it.
//
// Where ranks share memory, the rank that reduces a piece writes the sum into the buffers of all
// ranks (Use::reduced_in_place): each byte is read once and written once, and nothing is copied. In
// place, nothing is overwritten too early. A rank writes the piece of another only after the result
// of that rank has arrived, which was sent after that rank had read the inputs.
//
// Costs of an allreduce: two latencies. A rank sends elements + (ranks - 2) * its own piece. That
// is 2 * (ranks - 1) / ranks * elements when `ranks` divides the elements, as little as the ring.
// All ranks together send exactly 2 * (ranks - 1) * elements. Each rank sends to all others:
// between many hosts this means many connections and bursts at one port, which the ring avoids.
namespace trainyard::collectives::plan::direct {
namespace {

// Returns the piece of a rank in a chunk of an allreduce.
Range piece_of_chunk(const Plan& plan, size_t index, int rank) {
  const Range whole = chunk({0, plan.elements}, plan.chunk_elements,
                            chunks(plan.elements, plan.chunk_elements) - 1 - index);
  const Range part = piece(whole.size(), rank, plan.ranks);
  return {whole.begin + part.begin, whole.begin + part.end};
}

size_t chunks_of(const Plan& plan) {
  return plan.operation == Operation::allreduce ? chunks(plan.elements, plan.chunk_elements)
                                                : chunks(largest_block(plan), plan.chunk_elements);
}

Range part_of(const Plan& plan, size_t index, int rank) {
  return plan.operation == Operation::allreduce
             ? piece_of_chunk(plan, index, rank)
             : chunk(block_of(plan, rank), plan.chunk_elements, index);
}

void send_inputs(const Plan& plan, size_t index, Steps& steps) {
  // Each rank begins with another peer, so that not all send to the same rank at once.
  for (int k = 1; k < plan.ranks; ++k) {
    const int peer = around(plan.rank + k, plan.ranks);
    const Use use = plan.operation == Operation::allreduce ? Use::reduced_in_place : Use::reduced;
    add_send(steps, peer, part_of(plan, index, peer), use, true);
  }
}

void combine_own(const Plan& plan, size_t index, Steps& steps) {
  const Range own = part_of(plan, index, plan.rank);
  for (int peer = 0; peer < plan.ranks; ++peer) {
    if (peer != plan.rank) add_receive(steps, peer, own);
  }
  add_reduction(steps, own, plan.ranks - 1, plan.rank, plan.finishes, true);
}

void receive_results(const Plan& plan, size_t index, Steps& steps) {
  for (int k = 1; k < plan.ranks; ++k) {
    const int peer = around(plan.rank - k, plan.ranks);
    add_receive_into(steps, peer, part_of(plan, index, peer));
  }
}

}  // namespace

size_t rounds(const Plan& plan) {
  switch (plan.operation) {
    case Operation::gather:
    case Operation::scatter:
    case Operation::all_to_all:
      return 1;
    case Operation::allreduce: {
      const size_t all = chunks_of(plan);
      return all == 0 ? 0 : all + 1;
    }
    default:
      return chunks_of(plan);
  }
}

void add_round(const Plan& plan, size_t round, Steps& steps) {
  const size_t all =
      plan.operation == Operation::allreduce || plan.operation == Operation::reduce_scatter
          ? chunks_of(plan)
          : 0;
  switch (plan.operation) {
    case Operation::allreduce:
      if (round == 0) send_inputs(plan, 0, steps);
      if (round + 1 < all) send_inputs(plan, round + 1, steps);
      if (round < all) {
        combine_own(plan, round, steps);
        add_send(steps, kAllRanks, part_of(plan, round, plan.rank), Use::copied);
      }
      if (round > 0) receive_results(plan, round - 1, steps);
      return;
    case Operation::reduce_scatter:
      if (round == 0) send_inputs(plan, 0, steps);
      if (round + 1 < all) send_inputs(plan, round + 1, steps);
      combine_own(plan, round, steps);
      return;
    case Operation::all_gather:
      add_send(steps, kAllRanks, part_of(plan, round, plan.rank), Use::copied);
      receive_results(plan, round, steps);
      return;
    case Operation::gather:
      if (plan.rank != plan.root)
        return add_send(steps, plan.root, plan.blocks[size_t(plan.rank)], Use::copied, true);
      for (int peer = 0; peer < plan.ranks; ++peer) {
        if (peer != plan.rank) add_receive_into(steps, peer, plan.blocks[size_t(peer)]);
      }
      return;
    case Operation::scatter:
      if (plan.rank != plan.root)
        return add_receive_into(steps, plan.root, plan.blocks[size_t(plan.rank)]);
      for (int peer = 0; peer < plan.ranks; ++peer) {
        if (peer != plan.rank) add_send(steps, peer, plan.blocks[size_t(peer)], Use::copied, true);
      }
      return;
    case Operation::all_to_all:
      for (int k = 1; k < plan.ranks; ++k) {
        const int to = around(plan.rank + k, plan.ranks);
        const int from = around(plan.rank - k, plan.ranks);
        add_send(steps, to, plan.blocks[size_t(to)], Use::copied, true);
        add_receive_into(steps, from, plan.received_blocks[size_t(from)]);
      }
      return;
    default:
      CHECK(false, "the algorithm implements the operation");
  }
}

Cost cost(const Plan& plan) {
  const size_t others = size_t(plan.ranks - 1);
  const size_t largest = largest_block(plan);
  size_t smallest = largest;
  for (int rank = 0; rank < plan.ranks; ++rank)
    smallest = std::min(smallest, block_of(plan, rank).size());
  switch (plan.operation) {
    case Operation::allreduce: {
      // The longer pieces of each chunk belong to the first ranks, so rank 0 has most of the work.
      size_t own = 0;
      for (size_t i = 0; i < chunks_of(plan); ++i) own += piece_of_chunk(plan, i, 0).size();
      return {2, plan.elements + (others - 1) * own, 2 * others * plan.elements, others * own};
    }
    case Operation::reduce_scatter:
      return {1, plan.elements - smallest, others * plan.elements, others * largest};
    case Operation::all_gather:
      return {1, others * largest, others * plan.elements, 0};
    case Operation::gather: {
      size_t most = 0;
      for (int rank = 0; rank < plan.ranks; ++rank) {
        if (rank != plan.root) most = std::max(most, plan.blocks[size_t(rank)].size());
      }
      return {1, most, plan.elements - plan.blocks[size_t(plan.root)].size(), 0};
    }
    case Operation::scatter: {
      const size_t sent = plan.elements - plan.blocks[size_t(plan.root)].size();
      return {1, sent, sent, 0};
    }
    // all_to_all: only this rank's blocks are known, so the sum over all ranks is not
    default:
      return {1, plan.elements - plan.blocks[size_t(plan.rank)].size(), 0, 0};
  }
}

}  // namespace trainyard::collectives::plan::direct
