#include "schedule/preferences.hpp"

#include <algorithm>
#include <set>

#include "base/check.hpp"

namespace trainyard::schedule {
namespace {

std::string types_of(const WaitingJob& waiting) {
  std::string names;
  for (const HostRequest& request : waiting.requests)
    names += (names.empty() ? "" : " + ") + request.instance_type;
  return names;
}

// Formats the pending reason of a job for which none of its preferences has capacity.
std::string reason_of(const WaitingJob& waiting, const std::string& reason) {
  return "none of its " + std::to_string(waiting.alternatives.size() + 1) +
         " instance preferences has free capacity; " + types_of(waiting) + ": " + reason;
}

// Preferences holds the waiting jobs with alternatives, and the preference of each in the next
// plan.
class Preferences {
 public:
  explicit Preferences(const Snapshot& snapshot) : snapshot_(snapshot), tried_(snapshot) {
    for (uint32_t i = 0; i < snapshot.waiting.size(); ++i)
      if (!snapshot.waiting[i].alternatives.empty()) jobs_.push_back({i});
  }

  const Snapshot& tried() const { return tried_; }

  // Selects the next preference of each job that the plan did not start. Returns true if a
  // preference has changed, so that the next plan may differ.
  bool try_next(const Plan& plan) {
    std::set<domain::JobNumber> started;
    for (const Start& start : plan.starts) started.insert(start.job);
    bool changed = false;
    for (Candidate& each : jobs_) {
      const WaitingJob& job = snapshot_.waiting[each.index];
      if (each.decided || (each.decided = started.contains(job.job))) continue;
      const uint32_t next = each.preference + 1;
      each.decided = next > job.alternatives.size();
      each.preference = each.decided ? 0 : next;
      tried_.waiting[each.index] = with_preference(job, each.preference);
      changed = true;
    }
    return changed;
  }

  // Adds the preferences of jobs to their starts and pending reasons.
  void describe(Plan& plan) const {
    for (Start& start : plan.starts)
      if (const Candidate* job = find(start.job)) start.preference = job->preference;
    for (Wait& wait : plan.waits)
      if (const Candidate* job = find(wait.job))
        wait.reason = reason_of(tried_.waiting[job->index], wait.reason.str());
  }

 private:
  struct Candidate {
    uint32_t index = 0;  // in Snapshot::waiting
    uint32_t preference = 0;
    bool decided = false;
  };

  const Candidate* find(domain::JobNumber number) const {
    const auto found = std::ranges::lower_bound(jobs_, number, {}, [&](const Candidate& each) {
      return snapshot_.waiting[each.index].job;
    });
    return found != jobs_.end() && snapshot_.waiting[found->index].job == number ? &*found
                                                                                 : nullptr;
  }

  const Snapshot& snapshot_;
  Snapshot tried_;
  std::vector<Candidate> jobs_;  // ordered by job, as in Snapshot::waiting
};

}  // namespace

WaitingJob with_preference(const WaitingJob& waiting, uint32_t preference) {
  CHECK(preference <= waiting.alternatives.size(), "the job has that preference");
  WaitingJob with = waiting;
  if (preference == 0) return with;
  const Alternative& alternative = waiting.alternatives[preference - 1];
  with.requests = alternative.requests;
  with.choices = alternative.choices;
  with.demands = alternative.demands;
  with.pools.clear();
  return with;
}

Plan plan_by_preference(const Snapshot& snapshot,
                        const std::function<Plan(const Snapshot&)>& plan_once) {
  Preferences preferences(snapshot);
  Plan plan = plan_once(preferences.tried());
  while (preferences.try_next(plan)) plan = plan_once(preferences.tried());
  preferences.describe(plan);
  return plan;
}

}  // namespace trainyard::schedule
