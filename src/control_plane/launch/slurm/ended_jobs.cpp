#include "launch/slurm/ended_jobs.hpp"

#include <algorithm>
#include <set>

#include "base/log.hpp"
#include "launch/slurm/slurm_states.hpp"

namespace trainyard::launch {
namespace {

std::set<uint64_t> ids_of(const std::vector<SlurmJob>& jobs) {
  std::set<uint64_t> ids;
  for (const SlurmJob& job : jobs) ids.insert(job.id);
  return ids;
}

}  // namespace

std::vector<SlurmJob> forgotten_jobs(const std::vector<SlurmJob>& previous,
                                     const std::vector<SlurmJob>& listed) {
  const auto present = ids_of(listed);
  std::vector<SlurmJob> forgotten;
  for (const SlurmJob& job : previous)
    if (!has_ended(job) && !present.contains(job.id)) forgotten.push_back(job);
  return forgotten;
}

void EndedJobs::complete(Slurm& slurm, std::vector<SlurmJob>& listed) {
  const auto now = clock_.monotonic();
  if (has_accounting_)
    for (const SlurmJob& job : forgotten_jobs(previous_, listed))
      unknown_.try_emplace(job.id, Forgotten{job, now});
  previous_ = listed;
  const auto present = ids_of(listed);
  for (auto* jobs : {&unknown_, &ended_})
    std::erase_if(*jobs, [&](const auto& each) { return present.contains(each.first); });
  if (!unknown_.empty()) look_up(slurm);
  std::erase_if(unknown_, [&](const auto& each) { return each.second.since + kAnswerMax <= now; });
  std::erase_if(ended_, [&](const auto& each) { return each.second.since + kKept <= now; });
  for (const auto* jobs : {&unknown_, &ended_})
    for (const auto& [id, forgotten] : *jobs) listed.push_back(forgotten.job);
}

void EndedJobs::look_up(Slurm& slurm) {
  std::vector<uint64_t> ids;
  for (const auto& [id, forgotten] : unknown_) ids.push_back(id);
  const auto found = slurm.ended(ids);
  if (!found) {
    log(Level::warning, "launch", "cannot read from Slurm's accounting how jobs have ended",
        {{"jobs", std::to_string(ids.size())}, {"why", found.error().message}});
    if (found.error().kind != Kind::not_found) return;
    has_accounting_ = false;
    return unknown_.clear();
  }
  for (const SlurmJob& job : *found) {
    const auto known = unknown_.find(job.id);
    if (known == unknown_.end() || known->second.job.user != job.user) continue;
    Forgotten ended = std::move(known->second);
    ended.job.state = job.state;
    ended.job.reason = job.reason;
    ended_.insert_or_assign(job.id, std::move(ended));
  }
  // The accounting does not know the others, or not that they have ended.
  unknown_.clear();
}

}  // namespace trainyard::launch
