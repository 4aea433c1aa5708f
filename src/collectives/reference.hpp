// What every plan must equal: the slow and obvious way, over all ranks' inputs at once.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <functional>
#include <vector>

namespace trainyard::collectives::reference {

// For each element the ranks' values are added one after the other, beginning with first_rank(element) and
// going up, around the end. Floating-point addition is not associative, so the order is part of what a plan
// promises. Requires: all inputs are equally long.
std::vector<float> allreduce_sum(const std::vector<std::vector<float>>& inputs,
                                 const std::function<int(size_t element)>& first_rank);

// All ranks' blocks, one after the other.
template <class Element>
std::vector<Element> all_gather(const std::vector<std::vector<Element>>& inputs) {
  std::vector<Element> all;
  for (const auto& input : inputs) all.insert(all.end(), input.begin(), input.end());
  return all;
}

}  // namespace trainyard::collectives::reference
