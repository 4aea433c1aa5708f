#include "console/job_feed.hpp"

#include <algorithm>
#include <set>

namespace trainyard::api::console {

void JobFeed::publish(const std::string& region, const std::string& job) {
  const MutexLock lock(mutex_);
  if (ring_.size() < kChangesMax)
    ring_.push_back({region, job});
  else
    ring_[next_ % kChangesMax] = {region, job};
  ++next_;
}

uint64_t JobFeed::position() const {
  const MutexLock lock(mutex_);
  return next_;
}

JobFeed::Changes JobFeed::since(uint64_t position, const std::string& region) const {
  Changes out;
  const MutexLock lock(mutex_);
  out.position = next_;
  if (next_ - position > ring_.size()) {
    out.missed = true;
    return out;
  }
  std::set<std::string_view> seen;
  for (uint64_t at = next_; at-- > position;) {
    const Change& change = ring_[at % kChangesMax];
    if (change.region == region && seen.insert(change.job).second) out.jobs.push_back(change.job);
  }
  std::ranges::reverse(out.jobs);
  return out;
}

}  // namespace trainyard::api::console
