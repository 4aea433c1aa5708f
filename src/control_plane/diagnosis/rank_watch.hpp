// RankWatch follows the ranks of one job, and reports when a fault of a rank begins and ends.
//
// A fault of waiting ranks begins and ends as soon as it is detected. The fault of a slow rank,
// loader or link begins after two consecutive windows of time in which it was slow, and ends after
// two in which it was not: a single long pause, as for a checkpoint, makes one slow window.
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
inline constexpr uint64_t kWindowCalls = 4;  // the mean of fewer calls is not meaningful
inline constexpr int kWindowsToChange = 2;
inline constexpr Duration kPauseMin = 4s;  // shorter pauses are ignored
inline constexpr size_t kGroupsMax = 64;   // of one job, which may report any number
inline constexpr size_t kPresentMax = 64;  // faults of one job at a time

struct FaultNews {
  RankFault fault;
  bool begins = false;  // true: it has begun; false: it has ended
  Duration lasted{};    // the duration of an ended fault
};

class RankWatch {
 public:
  using Time = std::chrono::nanoseconds;

  // Examines the current state of all known ranks; ranks of one group have the same group number
  // and size. Returns the faults that have begun or ended since the last call.
  std::vector<FaultNews> update(const std::vector<RankState>& ranks, Time now);
  // Ends all faults, when the ranks no longer exist. Returns those that had begun.
  std::vector<FaultNews> end(Time now);
  // Returns the faults that have begun and not ended.
  std::vector<RankFault> faults() const;

 private:
  using GroupKey = std::pair<uint64_t, uint32_t>;          // number, ranks
  using RankKey = std::pair<domain::HostIndex, uint32_t>;  // host, rank
  // A slow rank, loader or link whose fault may begin, or has begun and may end.
  struct SlowFault {
    RankFault fault;
    int windows = 0;          // consecutive windows in which it was slow
    int windows_without = 0;  // consecutive windows in which it was not
    bool has_begun = false;
  };
  struct Group {
    Time window_began{};
    std::map<RankKey, wire::RankCalls> at_window;  // the counters when the window began
    std::vector<SlowFault> slow;
    uint64_t completed = 0;  // calls that all ranks have completed
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
