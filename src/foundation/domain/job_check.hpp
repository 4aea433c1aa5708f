// Checks what code that plans and shows a job relies on. The front end refuses most of it with AWS's words; this is the
// second line: for commands of any origin, and for rows that an earlier version, or a damaged disk, left in the ledger.
//
// Threads: pure. Errors: invalid, naming the member and its value.
#pragma once

#include "base/result.hpp"
#include "domain/job.hpp"

namespace trainyard::domain {

// Every number of the spec is within its limit (limits.hpp), and so are their sums.
Result<void> check_limits(const JobSpec& spec);

// Checks that the parts of a job agree with each other: a running job has an attempt, which has as many hosts as its spec,
// and so on. `spec` itself may be beyond its limits.
Result<void> check_consistent(const Job& job);

}  // namespace trainyard::domain
