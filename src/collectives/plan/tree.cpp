#include "base/check.hpp"
#include "collectives/plan/plan.hpp"

namespace trainyard::collectives::plan {

// Binomial tree broadcast
//
// Seen from the root, rank is at distance (rank - root) around the circle. In the round of span s = 1, 2, 4,
// .. every rank at a distance below s already has the data and sends it to the rank s further on. So a rank
// receives once, in the round of the highest bit of its distance, and sends in all rounds after it.
//
// Costs: the smallest whole number of rounds that is at least log2(ranks); the root sends in every one of
// them; over all ranks exactly (ranks - 1) * elements are sent.
Steps tree_broadcast(int rank, int ranks, size_t elements, int root) {
  CHECK(ranks > 0 && rank >= 0 && rank < ranks && root >= 0 && root < ranks,
        "rank and root are among the ranks");
  if (elements == 0) return {};
  const Range all{0, elements};
  const int distance = (rank - root + ranks) % ranks;

  Steps steps;
  for (int span = 1; span < ranks; span *= 2) {
    if (distance < span) {
      if (distance + span < ranks) steps.push_back({Action::send, (rank + span) % ranks, all});
    } else if (distance < 2 * span) {
      steps.push_back({Action::receive, (rank - span + ranks) % ranks, all});
      steps.push_back({Action::copy, -1, all});
    }
  }
  return steps;
}

}  // namespace trainyard::collectives::plan
