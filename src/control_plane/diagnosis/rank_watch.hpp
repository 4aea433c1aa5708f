// RankWatch follows the ranks of one job, and reports when a fault of a rank begins and ends.
//
// A fault of waiting ranks begins and ends as soon as it is seen. A slow rank, loader or link
// begins after two windows of time in a row in which it was slow, and ends after two in which it
// was not: a single long pause, as for a checkpoint, makes one slow window.
//
// Threads: confined to one at a time. Errors: none. The caller passes the time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "diagnosis/rank_faults.hpp"

namespace trainyard::diagnosis {

inline constexpr Duration kWindow = 3900ms;  // two reports of an agent
inline constexpr Duration kWindowMax = 10min;
inline constexpr uint64_t kWindowCalls = 4;  // fewer have no meaningful mean
inline constexpr int kWindowsToChange = 2;
inline constexpr Duration kPauseMin = 4s;  // shorter ones are not learnt
inline constexpr size_t kGroupsMax = 64;   // of one job; a job may report any
inline constexpr size_t kPresentMax = 64;  // faults of one job at a time

struct FaultNews {
  RankFault fault;
  bool begins = false;  // else it has ended
  Duration lasted{};    // set when it has ended: how long it lasted
};

class RankWatch {
 public:
  using Time = std::chrono::nanoseconds;

  // Examines the current state of all known ranks; ranks of one group have the same group number
  // and size. Returns the faults that have begun or ended since the last call.
  std::vector<FaultNews> update(const std::vector<RankState>& ranks, Time now);
  // Ends all faults: the ranks are gone. Returns those that had begun.
  std::vector<FaultNews> end(Time now);
  // The faults that have begun and not ended.
  std::vector<RankFault> faults() const;

 private:
  using GroupKey = std::pair<uint64_t, uint32_t>;          // number, ranks
  using RankKey = std::pair<domain::HostIndex, uint32_t>;  // host, rank
  // A fault of windows that may begin, or has begun and may end.
  struct SlowFault {
    RankFault fault;
    int windows = 0;          // in a row with it
    int windows_without = 0;  // in a row
    bool has_begun = false;
  };
  struct Group {
    Time window_began{};
    std::map<RankKey, wire::RankCalls> at_window;  // as the window began
    std::vector<SlowFault> slow;
    uint64_t completed = 0;  // by all ranks
    Duration pause{}, longest_pause{};
  };
  struct Present {
    RankFault fault;
    Time began{};
  };

  static void update_group(Group& group, const std::vector<RankState>& ranks, Time now,
                           std::vector<RankFault>& found);
  static void learn_pause(Group& group, const std::vector<RankState>& ranks);
  static void follow_window(Group& group, const std::vector<RankState>& ranks, Time now);
  static void begin_window(Group& group, const std::vector<RankState>& ranks, Time now);
  static void end_window(Group& group, const std::vector<RankFault>& faults);

  std::map<GroupKey, Group> groups_;  // at most kGroupsMax
  std::vector<Present> present_;      // at most kPresentMax
};

}  // namespace trainyard::diagnosis
