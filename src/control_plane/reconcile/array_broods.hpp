// Counts the children of arrays that are in memory and not over.
//
// Threads: pure. Private to this module.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "domain/job.hpp"

namespace trainyard::reconcile {

struct Brood {
  uint32_t all = 0;
  uint32_t waiting = 0;   // could be placed
  uint32_t awaiting = 0;  // depend on others
};

std::map<domain::JobNumber, Brood> broods_of(
    const std::vector<std::shared_ptr<const domain::Job>>& jobs);

}  // namespace trainyard::reconcile
