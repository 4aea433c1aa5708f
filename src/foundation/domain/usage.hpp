// Computes the usage of a queue's share for fair share: vCPU seconds, which decay. After the
// queue's decay time, 1/e (about a third) of the usage is left. So a constant number of vCPUs
// counts as that number times the decay time.
//
// Only the usage of ended attempts is stored. The usage of running attempts is added at each query,
// so nothing is written while no job changes.
//
// Threads: plain values, pure functions.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "domain/job.hpp"

namespace trainyard::domain {

// Identifies a job queue's share, or the creator of training jobs without a queue. The latter has
// an empty queue key, since these jobs wait in one internal queue for all regions.
struct ShareKey {
  JobKey queue;
  std::string share;
  auto operator<=>(const ShareKey&) const = default;
};

struct Usage {
  double cpu_seconds = 0;
  Instant at;  // the time for which the numbers hold
  // of the counted attempts; they decay alike, so the quotient is their mean duration
  double cpus = 0;
  bool operator==(const Usage&) const = default;
};
using Usages = std::map<ShareKey, Usage>;

// Returns the usage that is left now.
Usage faded(const Usage& usage, Duration decay, Instant now);
// Returns the decayed usage of `cpus` vCPUs that were held from `since` to `now`.
double used_since(double cpus, Instant since, Duration decay, Instant now);

// Returns nullopt if the job's queue has no shares.
std::optional<ShareKey> share_of(const Job& job);
// The decay time of jobs without a queue: a day, since they run for hours.
inline constexpr Duration kDecayOfOthers = 24h;

// Returns the number of vCPUs that the attempt's hosts hold.
double cpus_of(const Attempt& attempt);
// Returns the share's usage after a job changed from `before` to `after`, or nullopt if the change
// ended no attempt. `present` is the share's usage before.
std::optional<Usage> usage_after(const std::optional<Usage>& present, const Job* before,
                                 const Job& after, Duration decay);
// True if the usage is so small that it can be removed.
bool is_nothing(const Usage& usage, Duration decay, Instant now);

}  // namespace trainyard::domain
