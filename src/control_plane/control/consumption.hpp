// Counts how much of each consumable resource is in use by the jobs that hold machines. Nothing of
// it is stored: it is added up from the jobs at each call, so that no end of a job can be missed.
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

// Counts replenishable resources only: others were subtracted from the total at the attempt's
// start.
Consumed consumed_by(const std::vector<std::shared_ptr<const domain::Job>>& jobs);

}  // namespace trainyard::control
