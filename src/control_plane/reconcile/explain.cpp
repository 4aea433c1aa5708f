#include "reconcile/explain.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "domain/array.hpp"
#include "reconcile/guarded_text.hpp"

namespace trainyard::reconcile {
namespace {

using domain::Job;
using domain::JobNumber;
using domain::JobState;

class Explainer {
 public:
  Explainer(const Snapshot& snapshot, const ExplainRights& rights)
      : snapshot_(snapshot), rights_(rights) {}

  // An array is not placed itself, so its first waiting child is explained.
  Result<const Job*> waiting(JobNumber number) {
    const Job* job = find(number);
    if (!job) return unavailable("the job has not been planned yet: try again");
    if (job->is_array()) {
      const auto child = std::ranges::find_if(snapshot_.jobs, [&](const auto& each) {
        return each->parent == number && each->state == JobState::waiting;
      });
      if (child != snapshot_.jobs.end()) job = child->get();
    }
    if (job->state != JobState::waiting) return conflict("the job does not wait");
    own_ = job->number;
    return job;
  }

  bool may_see(JobNumber number) {
    if (number == own_) return true;
    const auto known = seen_.find(number);
    if (known != seen_.end()) return known->second;
    const Job* job = find(number);
    return seen_[number] = job && rights_.may_see(*job);
  }

  std::string revealed(const std::string& text) {
    return reveal(text, [this](JobNumber number) { return may_see(number); });
  }

  ExplanationAnswer shown(const schedule::WhatIfAnswer& answer, Instant now) {
    ExplanationAnswer out{.change = answer.change,
                          .now = answer.starts == now,
                          .starts = answer.starts + snapshot_.clock_offset};
    out.change.name = revealed(answer.change.name);
    if (const Job* job = answer.change.job == 0 ? nullptr : find(answer.change.job)) {
      out.job = job->key;
      out.job_title = job_title(*job);
    }
    return out;
  }

 private:
  const Job* find(JobNumber number) const { return domain::find_job(snapshot_.jobs, number); }

  const Snapshot& snapshot_;
  const ExplainRights& rights_;
  JobNumber own_ = 0;
  std::map<JobNumber, bool> seen_;  // rights are checked once per job, since they may read tags
};

std::vector<schedule::Machine> kinds_to_add(const Snapshot& snapshot) {
  std::vector<schedule::Machine> kinds;
  for (const launch::MachineKind& kind : snapshot.kinds)
    kinds.push_back({kind.name, {kind.cpus, kind.memory_bytes, kind.gpus}});
  return kinds;
}

}  // namespace

Result<Explanation> explain(const Snapshot& snapshot, const schedule::Policy& policy,
                            const Timeout& timeout, const Spot& spot, Instant now, JobNumber number,
                            const ExplainRights& rights, bool with_changes) {
  Explainer explaining(snapshot, rights);
  const Job* job = TRY(explaining.waiting(number));
  PlannedCluster planned =
      planned_cluster(snapshot, policy, timeout, spot, now, job->number, rights.may_use);
  Explanation out{.job = job->key};
  if (!std::ranges::binary_search(planned.cluster.waiting, job->number, {},
                                  &schedule::WaitingJob::job)) {
    if (planned.not_planned.empty())
      return unavailable("the job has not been planned yet: try again");
    out.reason = explaining.revealed(planned.not_planned);
    return out;
  }
  const schedule::WhatIfQuestion question{
      .job = job->number,
      .variants = std::move(planned.variants),
      .machine_kinds = kinds_to_add(snapshot),
      .may_name = [&](JobNumber other) { return explaining.may_see(other); },
      .preemption_takes = std::max(timeout.spot_notice, timeout.stop_grace) + timeout.stop_upload,
      .with_changes = with_changes};
  const schedule::WhatIf found = schedule::what_if(planned.cluster, policy, now, question);
  out.reason = explaining.revealed(found.reason);
  if (found.starts) out.starts = *found.starts + snapshot.clock_offset;
  for (const schedule::WhatIfAnswer& answer : found.answers)
    out.answers.push_back(explaining.shown(answer, now));
  out.whole = found.whole;
  return out;
}

Result<Explanation> preview(const Snapshot& snapshot, const schedule::Policy& policy,
                            const Timeout& timeout, const Spot& spot, Instant now, CreateJob create,
                            const ExplainRights& rights, bool with_changes) {
  // A new job comes after all other jobs.
  create.number = 1;
  for (const auto& job : snapshot.jobs)
    create.number = std::max(create.number, domain::last_number_of(*job) + 1);
  create.clock_offset = snapshot.clock_offset;
  const JobNumber number = create.number;
  Change change = TRY(apply({}, std::move(create), now));
  Snapshot with_job = snapshot;
  with_job.jobs.push_back(std::make_shared<const Job>(*std::move(change.job)));
  return explain(with_job, policy, timeout, spot, now, number, rights, with_changes);
}

}  // namespace trainyard::reconcile
