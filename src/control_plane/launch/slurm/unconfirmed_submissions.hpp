// UnconfirmedSubmissions remembers attempts whose submission Slurm did not answer. Slurm may have a
// job for each, and may carry out a request after it has hung.
//
// Threads: confined to one. Errors: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "domain/placement.hpp"

namespace trainyard::launch {

class UnconfirmedSubmissions {
 public:
  // `change`: the submission's number (SlurmView::note_change()).
  void add(const domain::AttemptId& attempt, uint64_t change) { all_[attempt] = {change}; }
  bool contains(const domain::AttemptId& attempt) const { return all_.contains(attempt); }
  // Forgets the submissions of which an answer of Slurm tells the outcome. `changes`: as
  // SlurmAnswer's. `is_listed`: returns true if the answer has a job of the attempt. `note_change`:
  // as SlurmView's.
  void apply(uint64_t changes, const std::function<bool(const domain::AttemptId&)>& is_listed,
             const std::function<uint64_t()>& note_change);

 private:
  struct Submission {
    uint64_t change = 0;
    bool was_absent = false;  // from an answer to a query after the change
  };
  std::map<domain::AttemptId, Submission> all_;
};

}  // namespace trainyard::launch
