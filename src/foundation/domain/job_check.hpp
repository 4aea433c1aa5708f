// Checks properties of jobs on which planning and display rely. The front end rejects most invalid
// requests with AWS's errors. These checks also apply to other commands, and to rows of the ledger,
// which may come from any version or a damaged disk.
//
// Threads: pure. Errors: invalid, naming the member and its value.
#pragma once

#include "base/result.hpp"
#include "domain/job.hpp"

namespace trainyard::domain {

// Checks that all numbers of the spec and their sums are within the limits (limits.hpp).
Result<void> check_limits(const JobSpec& spec);

// Checks that the parts of a job are consistent: for example, a running job has an attempt with as
// many hosts as its spec. Does not check the limits of `spec`.
Result<void> check_consistent(const Job& job);

}  // namespace trainyard::domain
