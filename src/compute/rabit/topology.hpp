// Computes the tree and the ring in which rabit's workers connect.
//
// The tree is a binary heap. The ring visits it depth first, every last child in reverse, so that
// it shares edges with the tree. Ranks are numbered along the ring: rank r is followed by r + 1.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <vector>

namespace trainyard::rabit {

struct RankLinks {
  int parent = -1;               // -1: of the root, rank 0
  std::vector<int> neighbours;   // in the tree, in ascending order
  int previous = -1, next = -1;  // in the ring
};

// Returns the links of each rank. Requires: workers > 0.
std::vector<RankLinks> topology(int workers);

}  // namespace trainyard::rabit
