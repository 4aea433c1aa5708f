// Who gives way to a job of a quota share: borrowers from other shares, when it needs back what is its share's own; less
// urgent jobs of its own share, where the share lets them.
//
// The fewest, least urgent, youngest, and only if the job then really has all that it needs: quota, limits and machines.
// What leaves already counts as gone, so nobody is told to leave for what comes free anyway.
//
// Threads: pure. Private to this room.
#pragma once

#include <optional>
#include <vector>

#include "schedule/allocations.hpp"
#include "schedule/limits.hpp"
#include "schedule/quota.hpp"
#include "schedule/room.hpp"

namespace trainyard::schedule {

struct GivingWay {
  std::vector<uint32_t>
      who;        // holdings that must leave; none: it will have all once those that leave have left
  Layout layout;  // where the job fits then
  std::vector<Share> then;  // by machine: what is free then, before the job starts
};

// What the job finds when its turn has come.
struct PreemptionView {
  const Places& places;
  const Allocations& allocations;
  const Limits& limits;
  const Quotas& quotas;
  const std::vector<uint32_t>& leaving;  // holdings
  const std::vector<Share>& then;        // by machine: what is free and not promised once these have left
  std::optional<Instant> ends = {};      // of the job
  const std::vector<Share>* spare =
      nullptr;  // by machine: what one who was before it leaves it; nullptr: nobody was
};

// Nothing: no end of those who may give way makes it fit.
std::optional<GivingWay> who_gives_way(const Waiting& job, const Gang& gang, const PreemptionView& view);

inline constexpr size_t kGivingWayMax = 256;  // at once, for one job

}  // namespace trainyard::schedule
