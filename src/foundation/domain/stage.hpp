// A Stage summarizes the state of a job and of its attempt in one value, by which jobs are counted
// and listed.
//
// Threads: pure functions.
#pragma once

#include <vector>

#include "domain/job.hpp"

namespace trainyard::domain {

// The ledger stores the numbers, so enumerators may only be appended.
enum class Stage {
  submitted,  // an array without children
  pending,    // waits for other jobs or for its children
  runnable,   // waits for machines
  starting,
  running,
  succeeded,
  failed,
};
inline constexpr size_t kStages = size_t(Stage::failed) + 1;

Stage stage_of(const Job& job);
// Returns the states that a job at this stage may have.
std::vector<JobState> states_of(Stage stage);

}  // namespace trainyard::domain
