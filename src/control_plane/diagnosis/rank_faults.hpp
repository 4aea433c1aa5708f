// Finds the rank, link or loader for which the other ranks of a group wait.
//
// waiting_faults() decides from where all ranks are now. A rank is late if it is outside of calls,
// has completed no more of them than any other, and others are inside. All programs have late ranks
// at times: one that writes a checkpoint, compiles a kernel or reads its first batch. A late rank
// therefore counts as stuck after kStuckAfter only if its host is idle, the group has begun to
// work, and no pause half as long has ended by itself; else after kBusyStuckAfter.
//
// slow_faults() decides from the times that each rank took for its calls in a window. A fast rank
// waits inside of calls for a slow one, so times outside are compared.
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
// Before that many calls a program prepares: it loads its first batch, or compiles.
inline constexpr uint64_t kStartCalls = 10;
inline constexpr Duration kPauseMax = 10min;  // that is learnt from pauses that ended by themselves

inline constexpr double kSlowFactor = 1.3;      // times the median outside of calls
inline constexpr double kSlowCycleShare = 0.1;  // and at least this share of the whole cycle
inline constexpr double kBusyShare = 0.3;  // a link that is busy for less of the cycle is not slow
// Fewer bytes of each call measure how late a link answers, and not how many bytes it takes.
inline constexpr double kLinkBytesMin = 64 * 1024;
// Seconds for each call. The kernel counts in milliseconds, so that less may be counted as nothing.
inline constexpr double kLinkBusyMin = 1e-4;
inline constexpr double kLinkFactor = 3;      // the median link takes bytes so much faster
inline constexpr size_t kLinksOfSlowOne = 4;  // more slow ones are the network as it is
inline constexpr double kLoadingShare = 0.5;  // loading is this share of the excess: the cause
inline constexpr size_t kFaultsMax = 8;       // named at a time, for each kind

// Where a rank is; the ages of `calls` are as of now.
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
  std::string text = {};              // for people; not part of the identity
  bool same_as(const RankFault& other) const {
    return kind == other.kind && host == other.host && rank == other.rank && peer == other.peer;
  }
};

// Returns the faults of a group in which ranks wait now. `longest_pause`: that ended by itself.
// Requires: the ranks are of one group.
std::vector<RankFault> waiting_faults(std::span<const RankState> ranks, Duration longest_pause);

// Returns for how long others have waited for the latest rank; none: no rank is late.
std::optional<Duration> present_pause(std::span<const RankState> ranks);

// The times of a rank in a window, in seconds for each of its calls.
struct RankRate {
  domain::HostIndex host = 0;
  uint32_t rank = 0;
  uint32_t group_rank = 0;
  double inside = 0, outside = 0, loading = 0;
  struct Link {
    uint32_t peer = 0;  // a rank of the group
    double busy = 0;    // seconds of each call with bytes under way
    double bytes = 0;   // that arrive in this time, for each call
  };
  std::vector<Link> links = {};
};

// Returns the ranks, loaders or links that were slow in a window.
std::vector<RankFault> slow_faults(std::span<const RankRate> ranks);

}  // namespace trainyard::diagnosis
