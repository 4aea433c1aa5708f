// Counts the children of arrays that are in memory and have not ended.
//
// Threads: pure. Private to this module.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "domain/job.hpp"

namespace trainyard::reconcile {

struct OpenChildren {
  uint32_t all = 0;
  uint32_t waiting = 0;    // could be placed
  uint32_t dependent = 0;  // depend on other jobs that have not ended
};

// Returns the counts by array.
std::map<domain::JobNumber, OpenChildren> count_open_children(
    const std::vector<std::shared_ptr<const domain::Job>>& jobs);

}  // namespace trainyard::reconcile
