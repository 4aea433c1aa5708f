#include "collectives/reference.hpp"

#include "base/check.hpp"

namespace trainyard::collectives::reference {

std::vector<float> allreduce_sum(const std::vector<std::vector<float>>& inputs,
                                 const std::function<int(size_t element)>& first_rank) {
  CHECK(!inputs.empty(), "a group has a rank");
  const size_t ranks = inputs.size();
  std::vector<float> sums;
  for (size_t element = 0; element < inputs[0].size(); ++element) {
    const size_t first = size_t(first_rank(element));
    float sum = inputs[first].at(element);
    for (size_t k = 1; k < ranks; ++k) sum += inputs[(first + k) % ranks].at(element);
    sums.push_back(sum);
  }
  return sums;
}

}  // namespace trainyard::collectives::reference
