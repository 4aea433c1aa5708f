// Groups waiting jobs into kinds. A hundred thousand jobs have only a handful of distinct requests.
// Jobs of a queue with equal requests are one kind, and a result for one of them applies to all.
//
// Threads: pure. Lifetime: refers to nothing. Private to this module.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

struct Kinds {
  struct Kind {
    uint32_t like = 0;   // the index of its first job in `waiting`
    uint32_t shape = 0;  // the shape of its hosts
  };
  std::vector<uint32_t> kind_of;  // by index in `waiting`
  std::vector<Kind> kinds;
  std::vector<uint32_t> shapes;  // by shape: the index of its first job in `waiting`
};

// Jobs of one kind have equal requests, choices, demands, queue and, in queues with quota shares,
// share. Their durations, priorities and pools may differ.
Kinds kinds_of(const std::vector<WaitingJob>& waiting, const std::vector<Queue>& queues);

}  // namespace trainyard::schedule
