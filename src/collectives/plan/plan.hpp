// What one rank does in a collective operation, step by step, decided before any byte moves.
//
// Every rank computes its own steps from the same few numbers, so that nobody has to be asked. A plan touches
// nothing: run.cpp alone turns steps into I/O, and a test walks the steps of all ranks in one thread.
//
// Threads: pure functions. Errors: none; what is Required is checked.
// Units: ranges count elements of the caller's buffer, not bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trainyard::collectives::plan {

struct Range {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

enum class Action : uint8_t {
  send,     // `range` of the data goes to `peer`
  receive,  // as many elements come from `peer`, into the scratch at the same place
  reduce,   // data[range] = scratch[range] combined with data[range]
  copy,     // data[range] = scratch[range]
};

// Sends and receives that follow each other move at the same time; a reduce or copy waits for all before it.
// Ranges are never empty: what would move nothing is left out by both sides.
struct Step {
  Action action;
  int peer;  // of send and receive; -1 for reduce and copy
  Range range;
};

using Steps = std::vector<Step>;

// The `part`th of `parts` pieces of `elements`: sizes differ by at most one.
Range piece(size_t elements, int part, int parts);

// Requires, for all of them: ranks > 0, 0 <= rank < ranks.
// Costs stand above each algorithm's code.
Steps ring_allreduce(int rank, int ranks, size_t elements);
// `blocks[k]` is what rank k brings; afterwards every rank has all blocks. Blocks may differ in size and be
// empty.
Steps ring_all_gather(int rank, std::span<const Range> blocks);
Steps tree_broadcast(int rank, int ranks, size_t elements, int root);

// The rank whose value of `element` ring_allreduce adds first; the others follow upwards from it, around the
// ring.
int ring_first_rank(int ranks, size_t elements, size_t element);

}  // namespace trainyard::collectives::plan
