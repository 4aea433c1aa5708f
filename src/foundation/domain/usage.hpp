// Counts the usage of a share of a queue for fair share: vCPU seconds, which decay. After the queue's decay time 1/e, about a
// third, is left; so a share with a constant number of vCPUs counts for as many as it had in that time.
//
// Only the usage of ended attempts is stored. That of running ones is added at each query, so that nothing is written while
// nothing happens.
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

// Whose usage it is: of a job queue's share, or of who created training jobs of no queue (the queue's key is empty: there
// is one line of them for all regions).
struct ShareKey {
  JobKey queue;
  std::string share;
  auto operator<=>(const ShareKey&) const = default;
};

struct Usage {
  double cpu_seconds = 0;
  Instant at;       // what it was then
  double cpus = 0;  // that were held for that; they fade alike, so the quotient is how long jobs last
  bool operator==(const Usage&) const = default;
};
using Usages = std::map<ShareKey, Usage>;

// What is left of it now.
Usage faded(const Usage& usage, Duration decay, Instant now);
// What holding so many vCPU from then on counts for now.
double used_since(double cpus, Instant since, Duration decay, Instant now);

// Nothing: the job's queue has no shares.
std::optional<ShareKey> share_of(const Job& job);
// Jobs of no queue last for hours: their use of a day counts.
inline constexpr Duration kDecayOfOthers = 24h;

// vCPU that the hosts of its attempt hold.
double cpus_of(const Attempt& attempt);
// The usage after the job has become `after`; nothing, when no attempt of it has ended by that.
// `present`: of its share, until then.
std::optional<Usage> usage_after(const std::optional<Usage>& present, const Job* before, const Job& after,
                                 Duration decay);
// So little that it decides nothing: it may be forgotten.
bool is_nothing(const Usage& usage, Duration decay, Instant now);

}  // namespace trainyard::domain
