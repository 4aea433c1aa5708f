#include "base/nearest.hpp"

#include <algorithm>
#include <vector>

namespace trainyard {
namespace {

// Returns the edit distance: the number of letters to insert, delete, change, or swap with their
// neighbour.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> at(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) at[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) at[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      at[i][j] =
          std::min({at[i - 1][j] + 1, at[i][j - 1] + 1, at[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        at[i][j] = std::min(at[i][j], at[i - 2][j - 2] + 1);
    }
  return at[a.size()][b.size()];
}

template <class Name>
std::string nearest_of(std::string_view typed, std::span<const Name> names) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(1, typed.size() / 3) + 1;
  for (const std::string_view name : names) {
    if (typed.size() >= 2 && name.starts_with(typed)) return std::string(name);
    const size_t between = distance(typed, name);
    if (between < best_distance) best = name, best_distance = between;
  }
  return std::string(best);
}

}  // namespace

std::string nearest(std::string_view typed, std::span<const std::string> names) {
  return nearest_of(typed, names);
}

std::string nearest(std::string_view typed, std::span<const std::string_view> names) {
  return nearest_of(typed, names);
}

}  // namespace trainyard
