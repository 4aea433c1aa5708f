// Records when a host and its ranks were last active: the time of the last output, the time of each
// rank's last completed collective, and the calls that the ranks are in. The counters come from the
// pipe of the output and from the activity table (base/activity_table.hpp); the times are the
// agent's.
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

// The shortest time between two reports. The server adds the time since the last report, so an
// inactive host sends none.
inline constexpr Duration kActivityInterval = 5s;
// The same while ranks describe their calls: a stuck rank must be reported within 15 s.
inline constexpr Duration kCallsInterval = 2s;
// A host that uses fewer cores than these is idle. The limit is not 0 because waiting ranks poll.
inline constexpr double kIdleHostCores = 0.1;
inline constexpr double kWaitingRankCores = 0.05;  // for each rank, in addition

class ActivityWatch {
 public:
  // Updates the counters from their totals since the start. Returns a report if something has
  // changed since the last one. `cpu`: the CPU time of all processes; nullopt: unknown, which
  // counts as busy.
  std::optional<wire::Activity> update(uint64_t bytes_printed,
                                       const std::vector<ActivitySlot>& slots,
                                       std::chrono::nanoseconds now,
                                       const std::vector<RankRecord>& records = {},
                                       std::optional<std::chrono::nanoseconds> cpu = {});
  // Makes the next update() return a report. Called when the server has lost the last one.
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
  struct Calls {
    uint64_t group = 0, completed = 0, kind = 0, beats = 0;
    Time changed_at{}, beat_at{};
  };
  void update_counter(Counter& counter, uint64_t value, Time now);
  void update_ranks(const std::vector<ActivitySlot>& slots, Time now);
  void update_calls(const std::vector<RankRecord>& records, Time now);
  void update_idle(std::optional<std::chrono::nanoseconds> cpu, size_t ranks, Time now);
  void add_calls(const std::vector<RankRecord>& records, Time now, wire::Activity& activity) const;

  Counter output_;
  std::map<uint64_t, Rank> ranks_;   // at most kActivitySlots
  std::map<uint64_t, Calls> calls_;  // by rank, at most kActivitySlots
  std::chrono::nanoseconds cpu_{};
  std::optional<Time> updated_at_;
  Time idle_since_{};
  bool changed_ = false;  // since the last report
  std::optional<Time> reported_at_;
};

}  // namespace trainyard::agent
