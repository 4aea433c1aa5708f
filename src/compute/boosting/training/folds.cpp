#include "boosting/training/folds.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/random.hpp"

namespace trainyard::boosting {

std::vector<int> divide_into_folds(std::span<const float> labels, int folds, bool stratified,
                                   uint64_t seed) {
  std::vector<size_t> order(labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  SeededRandom random(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  if (stratified) std::ranges::stable_sort(order, {}, [&](size_t row) { return labels[row]; });
  std::vector<int> fold_of(labels.size());
  for (size_t i = 0; i < order.size(); ++i) fold_of[order[i]] = int(i % size_t(folds));
  return fold_of;
}

}  // namespace trainyard::boosting
