// Follows when a host and its ranks were last active: when output last came, and when a rank last
// completed a collective. The counters come from the pipe of the output and from the activity table
// (base/activity_table.hpp); the times are the agent's.
//
// Threads: confined to one. The caller passes the time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/activity_table.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

// The shortest time between two reports. The server counts on from the last one, so that a host
// that does nothing sends none.
inline constexpr Duration kActivityInterval = 5s;

class ActivityWatch {
 public:
  // Takes the totals since the start. Returns a report if something has happened since the last
  // one.
  std::optional<wire::Activity> look(uint64_t bytes_printed, const std::vector<ActivitySlot>& slots,
                                     std::chrono::nanoseconds now);
  // Makes the next look() return a report: the server has forgotten the last one.
  void forget_report() { reported_at_.reset(), changed_ = true; }

 private:
  using Time = std::chrono::nanoseconds;
  struct Counter {
    uint64_t value = 0;
    std::optional<Time> changed_at;
  };
  struct Rank {
    Counter output, collectives;
  };
  void follow(Counter& counter, uint64_t value, Time now);

  Counter output_;
  std::map<uint64_t, Rank> ranks_;  // at most kActivitySlots
  bool changed_ = false;            // since the last report
  std::optional<Time> reported_at_;
};

}  // namespace trainyard::agent
