// Names how far a job has come, as its states and its attempt show it: one value to count and to list jobs by.
//
// Threads: pure functions.
#pragma once

#include <vector>

#include "domain/job.hpp"

namespace trainyard::domain {

// The ledger stores the numbers: append only.
enum class Stage {
  submitted,  // an array of which no child was made yet
  pending,    // waits for other jobs, or for its children
  runnable,   // waits for machines
  starting,
  running,
  succeeded,
  failed,
};
inline constexpr size_t kStages = size_t(Stage::failed) + 1;

Stage stage_of(const Job& job);
// The states that a job at that stage may be in.
std::vector<JobState> states_of(Stage stage);

}  // namespace trainyard::domain
