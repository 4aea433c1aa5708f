// Counts how much of each consumable resource the jobs that hold machines use. It is summed up from
// the jobs at each call and not stored, so that no end of a job can be missed.
//
// Threads: pure. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "domain/job.hpp"

namespace trainyard::control {

using Consumed = std::map<domain::JobKey, int64_t>;  // by the resource's key

// Counts only replenishable resources: others were subtracted from their total when the attempt
// started.
Consumed consumed_by(const std::vector<std::shared_ptr<const domain::Job>>& jobs);

}  // namespace trainyard::control
