// Divides rows into folds for cross validation, with equal shares of each class in every fold.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trainyard::boosting {

// Returns the fold of each row, from 0 to folds - 1. The sizes of folds differ by at most 1. Equal
// arguments give equal folds. `stratified`: labels are classes.
std::vector<int> divide_into_folds(std::span<const float> labels, int folds, bool stratified,
                                   uint64_t seed);

}  // namespace trainyard::boosting
