// Computes the tree and the ring of connections between rabit's workers.
//
// The tree is a binary heap. The ring visits it depth first, and the subtree of every last child in
// reverse, so that ring and tree share edges. Ranks are numbered along the ring: rank r + 1 comes
// after rank r.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <vector>

namespace trainyard::rabit {

struct RankLinks {
  int parent = -1;               // -1 for the root, rank 0
  std::vector<int> neighbours;   // in the tree, in ascending order
  int previous = -1, next = -1;  // in the ring
};

// Returns the links of each rank. Requires: workers > 0.
std::vector<RankLinks> topology(int workers);

}  // namespace trainyard::rabit
