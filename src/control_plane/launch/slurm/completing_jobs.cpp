#include "launch/slurm/completing_jobs.hpp"

#include "launch/slurm/slurm_states.hpp"

namespace trainyard::launch {

void CompletingJobs::update(const std::vector<OwnJob>& jobs, std::chrono::nanoseconds now) {
  std::map<uint64_t, std::chrono::nanoseconds> since;
  for (const OwnJob& own : jobs) {
    if (!is_completing(own.job)) continue;
    const auto known = since_.find(own.job.id);
    since[own.job.id] = known == since_.end() ? now : known->second;
  }
  since_ = std::move(since);
  now_ = now;
}

bool CompletingJobs::is_recent(uint64_t job) const {
  const auto found = since_.find(job);
  return found != since_.end() && now_ - found->second < kRecent;
}

}  // namespace trainyard::launch
