// Plans jobs that accept several instance types, in an order of preference, and selects one type
// for each.
//
// It plans repeatedly. Each time, jobs that did not start take their next alternative, and jobs
// that did start keep theirs. A job without further alternatives waits for its first preference, as
// in a plan without alternatives. The last plan counts. So a job never starts with a later
// preference while an earlier one has capacity for it.
//
// Threads: pure. Errors: none. Cost: one plan more for each preference, and only while jobs with
// alternatives wait.
#pragma once

#include <functional>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

// Returns the job with its n-th preference; 0 is the first. With others it takes over no warm
// pools, whose hosts match the first only. Requires: preference <= waiting.alternatives.size().
WaitingJob with_preference(const WaitingJob& waiting, uint32_t preference);

// Requires: `plan_once` ignores alternatives.
Plan plan_by_preference(const Snapshot& snapshot,
                        const std::function<Plan(const Snapshot&)>& plan_once);

}  // namespace trainyard::schedule
