// Finds the rank, link or loader for which the other ranks of a group wait.
//
// waiting_faults() examines the current state of all ranks. A rank is late if it is outside of
// calls while others are inside, and no other rank has completed fewer calls. All programs have
// late ranks at times: a rank that writes a checkpoint, compiles a kernel or reads its first batch.
// So a late rank counts as stuck after kStuckAfter only if its host is idle, the group has made
// kStartCalls, and no pause half as long has ended by itself; otherwise after kBusyStuckAfter.
//
// slow_faults() compares the times of ranks in a window. A fast rank waits inside of calls for a
// slow one, so it compares the times outside of calls.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "domain/job.hpp"
#include "wire/messages.hpp"

namespace trainyard::diagnosis {

// With reports every two seconds, a rank is named within 15 s.
inline constexpr Duration kStuckAfter = 8s;
inline constexpr Duration kBusyStuckAfter = 90s;
inline constexpr Duration kStoppedAfter = 6s;    // inside a call, without a sign of life
inline constexpr Duration kOtherCallAfter = 3s;  // longer than a report is inconsistent
// During its first calls a program prepares: it loads its first batch, or compiles.
inline constexpr uint64_t kStartCalls = 10;
inline constexpr Duration kPauseMax = 10min;  // longer pauses that ended by themselves are ignored

// A rank is slow if its time outside of calls is at least this factor times the median, and exceeds
// it by at least this share of the whole cycle.
inline constexpr double kSlowFactor = 1.3;
inline constexpr double kSlowCycleShare = 0.1;
inline constexpr double kBusyShare = 0.3;  // a link that is busy for less of the cycle is not slow
// With fewer bytes per call, times show the latency of a link rather than its bandwidth.
inline constexpr double kLinkBytesMin = 64 * 1024;
// Seconds per call. The kernel counts in milliseconds, so that shorter times may be counted as 0.
inline constexpr double kLinkBusyMin = 1e-4;
inline constexpr double kLinkFactor = 3;      // the median link is faster by this factor
inline constexpr size_t kLinksOfSlowOne = 4;  // more slow links are not the fault of one of them
inline constexpr double kLoadingShare = 0.5;  // the loader is at fault for this share of the excess
inline constexpr size_t kFaultsMax = 8;       // reported at a time, of each kind

// The current state of a rank; the ages in `calls` are as of now.
struct RankState {
  domain::HostIndex host = 0;
  wire::RankCalls calls;
  Duration host_idle{};
};

enum class FaultKind : uint8_t {
  stuck_rank,
  stopped_rank,
  other_call,
  slow_rank,
  slow_loader,
  slow_link
};
std::string_view to_string(FaultKind kind);  // "StuckRank"

struct RankFault {
  FaultKind kind = FaultKind::stuck_rank;
  domain::HostIndex host = 0;
  uint32_t rank = 0;
  std::optional<uint32_t> peer = {};  // slow_link: the rank that receives
  std::string text = {};              // for users; not part of the identity
  bool same_as(const RankFault& other) const {
    return kind == other.kind && host == other.host && rank == other.rank && peer == other.peer;
  }
};

// Returns the faults for which ranks of a group wait now. `longest_pause` is the longest pause that
// ended by itself. Requires: the ranks are of one group.
std::vector<RankFault> waiting_faults(std::span<const RankState> ranks, Duration longest_pause);

// Returns for how long others have waited for the latest rank; nullopt if no rank is late.
std::optional<Duration> present_pause(std::span<const RankState> ranks);

// The times of a rank in a window, in seconds per call.
struct RankRate {
  domain::HostIndex host = 0;
  uint32_t rank = 0;
  uint32_t group_rank = 0;
  double inside = 0, outside = 0, loading = 0;
  struct Link {
    uint32_t peer = 0;  // a rank of the group
    double busy = 0;    // seconds per call during which bytes are in flight
    double bytes = 0;   // bytes per call that arrive in this time
  };
  std::vector<Link> links = {};
};

// Returns the ranks, loaders or links that were slow in a window.
std::vector<RankFault> slow_faults(std::span<const RankRate> ranks);

}  // namespace trainyard::diagnosis
