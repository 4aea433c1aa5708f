// Computes the usage of shares of a queue, for fair share: vCPU seconds, which decay. After the
// decay time of the queue, 1/e (about a third) of the usage is left. A constant number of vCPUs
// therefore converges to a usage of that number times the decay time.
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

// Identifies a share of a job queue, or the creator of training jobs without a queue. The latter
// has an empty queue key, because these jobs wait in one internal queue for all regions.
struct ShareKey {
  JobKey queue;
  std::string share;
  auto operator<=>(const ShareKey&) const = default;
};

struct Usage {
  double cpu_seconds = 0;
  Instant at;  // the time to which the numbers have decayed
  // vCPUs of the counted attempts; they decay equally, so cpu_seconds / cpus is their mean duration
  double cpus = 0;
  bool operator==(const Usage&) const = default;
};
using Usages = std::map<ShareKey, Usage>;

// Returns the usage that is left at `now`.
Usage decayed(const Usage& usage, Duration decay, Instant now);
// Returns the decayed usage of `cpus` vCPUs that were held from `since` to `now`.
double used_since(double cpus, Instant since, Duration decay, Instant now);

// Returns nullopt if the job's queue has no shares.
std::optional<ShareKey> share_of(const Job& job);
// The decay time for jobs without a queue: a day, because they run for hours.
inline constexpr Duration kDecayOfOthers = 24h;

// Returns the number of vCPUs that the attempt's hosts hold.
double cpus_of(const Attempt& attempt);
// Returns the usage of a share after a job changed from `before` to `after`; nullopt if the change
// ended no attempt. `present` is the usage before the change.
std::optional<Usage> usage_after(const std::optional<Usage>& present, const Job* before,
                                 const Job& after, Duration decay);
// Returns true if the usage is so small that it can be removed.
bool is_negligible(const Usage& usage, Duration decay, Instant now);

}  // namespace trainyard::domain
