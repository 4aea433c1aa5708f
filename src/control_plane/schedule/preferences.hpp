// Plans jobs that have alternatives: several instance types in an order of preference, of which one
// is selected.
//
// Plans repeatedly. Each time, the jobs that did not start take their next alternative, and the
// jobs that did keep theirs; a job whose alternatives are used up waits for its first preference,
// as in a plan without alternatives. The last plan counts. So a job never starts with a later
// preference while an earlier one has capacity for it.
//
// Threads: pure. Errors: none. Cost: one plan more for each preference, and only while jobs with
// alternatives wait.
#pragma once

#include <functional>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

// Returns the job with its n-th preference: 0 is the first. Warm pools hold the hosts of that one
// only.
// Requires: preference <= waiting.alternatives.size().
WaitingJob with_preference(const WaitingJob& waiting, uint32_t preference);

// `plan_once` ignores alternatives.
Plan plan_by_preference(const Snapshot& snapshot,
                        const std::function<Plan(const Snapshot&)>& plan_once);

}  // namespace trainyard::schedule
