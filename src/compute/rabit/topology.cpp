#include "rabit/topology.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace trainyard::rabit {
namespace {

int heap_parent(int node) { return (node + 1) / 2 - 1; }

std::vector<int> heap_children(int node, int workers) {
  std::vector<int> children;
  for (const int child : {2 * node + 1, 2 * node + 2})
    if (child < workers) children.push_back(child);
  return children;
}

// Returns the nodes of the subtree of `node`, which comes first; the subtree of the last child is
// in reverse.
std::vector<int> ring_from(int node, int workers) {
  std::vector<int> ring{node};
  const auto children = heap_children(node, workers);
  for (const int child : children) {
    // recursion depth: the logarithm of the number of workers
    auto part = ring_from(child, workers);
    if (child == children.back()) std::ranges::reverse(part);
    ring.insert(ring.end(), part.begin(), part.end());
  }
  return ring;
}

}  // namespace

std::vector<RankLinks> topology(int workers) {
  CHECK(workers > 0, "a topology has at least one worker");
  const auto ring = ring_from(0, workers);
  std::vector<int> rank_of(ring.size());
  for (int rank = 0; rank < workers; ++rank) rank_of[size_t(ring[size_t(rank)])] = rank;
  std::vector<RankLinks> all(ring.size());
  for (int rank = 0; rank < workers; ++rank) {
    const int node = ring[size_t(rank)];
    RankLinks& links = all[size_t(rank)];
    if (node > 0) links.parent = rank_of[size_t(heap_parent(node))];
    if (node > 0) links.neighbours.push_back(links.parent);
    for (const int child : heap_children(node, workers))
      links.neighbours.push_back(rank_of[size_t(child)]);
    std::ranges::sort(links.neighbours);
    links.previous = (rank + workers - 1) % workers;
    links.next = (rank + 1) % workers;
  }
  return all;
}

}  // namespace trainyard::rabit
