// Chooses the jobs that are preempted for a job of a quota share: borrowers of other shares, when
// it reclaims its share's own capacity; jobs of lower priority of its own share, where the share
// allows it.
//
// It chooses the fewest, of the lowest priority, the youngest, and only if the job then has
// everything that it needs: quota, limits and machines. Jobs that are ending already count as gone,
// so that none is preempted for capacity that becomes free in any case.
//
// Threads: pure. Private to this module.
#pragma once

#include <optional>
#include <vector>

#include "schedule/allocations.hpp"
#include "schedule/free_capacity.hpp"
#include "schedule/limits.hpp"
#include "schedule/quota.hpp"

namespace trainyard::schedule {

struct PreemptionChoice {
  std::vector<uint32_t> preempted;  // allocations to preempt; none: enough jobs are already ending
  Layout layout;                    // the machines that the job will use
  std::vector<Share> then;          // by machine: what is free once they have ended
};

// The state of the plan when the job is decided.
struct PreemptionView {
  const Topology& topology;
  const Allocations& allocations;
  const Limits& limits;
  const Quotas& quotas;
  const std::vector<uint32_t>& leaving;  // allocations that are ending
  // By machine: what is free and not reserved once these have ended.
  const std::vector<Share>& then;
  std::optional<Instant> ends = {};  // of the job
  // By machine: what the reservation of an earlier job leaves; nullptr: no reservation.
  const std::vector<Share>* spare = nullptr;
};

// Returns nullopt if the job would not fit even if all candidates were preempted.
std::optional<PreemptionChoice> choose_preempted(const WaitingJob& job, const Gang& gang,
                                                 const PreemptionView& view);

inline constexpr size_t kPreemptedMax = 256;  // at once, for one job

}  // namespace trainyard::schedule
