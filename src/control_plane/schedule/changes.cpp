#include "schedule/changes.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "base/check.hpp"
#include "schedule/gang.hpp"
#include "schedule/limits.hpp"
#include "schedule/shares.hpp"

namespace trainyard::schedule {
namespace {

constexpr size_t kMachineKindsMax = 4;  // kinds of machines of the snapshot that are tried
// The begin of added machines' names. Names of real machines do not begin with a blank.
constexpr std::string_view kAddedMachine = " added-";

const WaitingJob& job_of(const Snapshot& snapshot, domain::JobNumber number) {
  const auto job = std::ranges::lower_bound(snapshot.waiting, number, {}, &WaitingJob::job);
  CHECK(job != snapshot.waiting.end() && job->job == number, "the job waits in the snapshot");
  return *job;
}

double cpus_of(const Running& running) {
  double cpus = 0;
  for (const Placement& host : running.hosts) cpus += host.share.cpus;
  return cpus;
}

double held_size(const Running& running) {
  double size = 0;
  for (const Placement& host : running.hosts) size += schedule::size_of(host.share);
  return size;
}

// Amounts are shown to users: 4.0000001 licences are 4.
double whole_amount(double amount) { return std::ceil(amount - kRoundingAmount); }

class Finder {
 public:
  Finder(const Snapshot& snapshot, const Policy& policy, const Plan& plan,
         const WhatIfQuestion& question)
      : snapshot_(snapshot),
        policy_(policy),
        plan_(plan),
        question_(question),
        job_(job_of(snapshot, question.job)),
        gang_(gang_of(job_.requests, snapshot.machines, policy)) {}

  std::vector<Change> all() {
    for (const Variant& variant : question_.variants) add(variant.change);
    raise_priority();
    raise_limits();
    raise_quota_share();
    add_machines();
    end_jobs();
    cancel_jobs();
    std::ranges::stable_sort(found_, {}, &Found::nth);
    std::vector<Change> changes;
    for (Found& each : found_) changes.push_back(std::move(each.change));
    return changes;
  }

 private:
  struct Found {
    Change change;
    size_t nth = 0;  // its position among the changes of its kind
  };

  void add(Change change) {
    const size_t nth = of_kind_[change.kind]++;
    found_.push_back({std::move(change), nth});
  }

  // Priorities matter only within a share of a queue with a scheduling policy.
  void raise_priority() {
    const Queue& queue = snapshot_.queues[job_.queue];
    if (!queue.fair && queue.quota_shares.empty()) return;
    int64_t highest = job_.priority;
    bool others = false;
    for (const WaitingJob& other : snapshot_.waiting)
      if (other.job != job_.job && other.queue == job_.queue && other.share == job_.share) {
        others |= other.priority >= job_.priority;
        highest = std::max(highest, other.priority);
      }
    for (const Running& other : snapshot_.running)  // the job may then preempt it
      if (other.gives_way && other.queue == job_.queue && other.share == job_.share) {
        others |= other.priority >= job_.priority;
        highest = std::max(highest, other.priority);
      }
    if (others && double(highest) + 1 <= kPriorityMax)
      add({.kind = ChangeKind::raise_priority,
           .from = double(job_.priority),
           .to = double(highest) + 1});
  }

  double used(size_t limit) const {
    double sum = snapshot_.limits[limit].used_besides;
    for (const Running& running : snapshot_.running)
      for (const Need& need : running.needs)
        if (need.limit == limit) sum += amount_of(need, cpus_of(running));
    return sum;
  }

  void raise_limits() {
    std::set<size_t> seen;
    for (const Choice& choice : job_.choices)
      for (const Need& need : choice.needs) {
        if (!seen.insert(need.limit).second) continue;
        const Limit& limit = snapshot_.limits[need.limit];
        const double enough = whole_amount(used(need.limit) + amount_of(need, gang_.cpus));
        if (enough > limit.total + kRoundingAmount)
          add({.kind = ChangeKind::raise_limit,
               .name = limit.name,
               .limit = need.limit,
               .from = limit.total,
               .to = enough});
      }
  }

  void raise_quota_share() {
    for (const QuotaShare& share : snapshot_.queues[job_.queue].quota_shares) {
      if (share.name != job_.share) continue;
      for (const QuotaShare::Quota& quota : share.quotas)
        if (const double enough = whole_amount(quota_needed(quota.unit)); enough > quota.capacity)
          add({.kind = ChangeKind::raise_quota_share,
               .name = share.name,
               .unit = quota.unit,
               .from = quota.capacity,
               .to = enough});
    }
  }

  // Returns what the share would hold of the unit with the job. 0: the job takes nothing of it.
  double quota_needed(const std::string& unit) const {
    const auto amount_in = [&](const std::vector<Demand>& demands) {
      double sum = 0;
      for (const Demand& demand : demands)
        if (demand.unit == unit) sum += demand.amount;
      return sum;
    };
    const double own = amount_in(job_.demands);
    if (own <= 0) return 0;
    double held = 0;
    for (const Running& running : snapshot_.running)
      if (running.queue == job_.queue && running.share == job_.share)
        held += amount_in(running.demands);
    return held + own;
  }

  std::vector<Machine> machine_kinds() const {
    if (!question_.machine_kinds.empty()) return question_.machine_kinds;
    std::vector<Machine> kinds;
    for (const Machine& machine : snapshot_.machines)
      if (kinds.size() < kMachineKindsMax && std::ranges::none_of(kinds, [&](const Machine& known) {
            return same(known.total, machine.total);
          }))
        kinds.push_back({"like " + machine.name, machine.total});
    return kinds;
  }

  void add_machines() {
    // A gang that is scaled to the only machine would not be scaled to two.
    if (policy_.scale_gangs && snapshot_.machines.size() == 1) return;
    bool any = false;
    for (const Machine& kind : machine_kinds()) any |= add_machines_of(kind);
    if (any || gang_.groups.empty()) return;
    Share largest;
    for (const Group& group : gang_.groups) {
      largest.cpus = std::max(largest.cpus, group.share.cpus);
      largest.memory_bytes = std::max(largest.memory_bytes, group.share.memory_bytes);
      largest.gpus = std::max(largest.gpus, group.share.gpus);
    }
    add_machines_of({"", largest});
  }

  // Adds two changes: one more machine, and as many as hold the whole gang. Returns false if these
  // machines are too small for a host.
  bool add_machines_of(const Machine& kind) {
    int64_t whole = 0;
    for (const Group& group : gang_.groups) {
      const int64_t times = times_within(group.share, kind.total);
      if (times == 0) return false;
      whole += (int64_t(group.count) + times - 1) / times;
    }
    const auto add_count = [&](int64_t count) {
      add({.kind = ChangeKind::add_machines,
           .name = kind.name,
           .to = double(count),
           .share = kind.total});
    };
    add_count(1);
    if (whole > 1 && whole <= int64_t(kMachinesAddedMax)) add_count(whole);
    return true;
  }

  // Adds the ends of the largest jobs, which are the likeliest to suffice.
  void end_jobs() {
    std::vector<const Running*> jobs;
    for (const Running& running : snapshot_.running)
      if (running.job != 0) jobs.push_back(&running);
    std::ranges::stable_sort(jobs, [](const Running* a, const Running* b) {
      const double size_a = held_size(*a), size_b = held_size(*b);
      return size_a != size_b ? size_a > size_b : a->started > b->started;
    });
    size_t tried = 0;
    for (size_t i = 0; i < std::min(jobs.size(), kJobsCheckedMax) && tried < kJobsTriedMax; ++i)
      if (question_.may_name(jobs[i]->job)) {
        add({.kind = ChangeKind::end_job, .job = jobs[i]->job});
        ++tried;
      }
  }

  // Adds the cancellations of the jobs before it, the first job first.
  void cancel_jobs() {
    size_t checked = 0, tried = 0;
    for (const Wait& wait : plan_.waits) {
      if (wait.job == job_.job || checked++ == kJobsCheckedMax || tried == kJobsTriedMax) return;
      if (!question_.may_name(wait.job)) continue;
      add({.kind = ChangeKind::cancel_job, .job = wait.job});
      ++tried;
    }
  }

  const Snapshot& snapshot_;
  const Policy& policy_;
  const Plan& plan_;
  const WhatIfQuestion& question_;
  const WaitingJob& job_;
  const Gang gang_;
  std::map<ChangeKind, size_t> of_kind_;
  std::vector<Found> found_;
};

bool same_change(const Change& a, const Change& b) {
  return a.kind == b.kind && a.name == b.name && a.from == b.from && a.to == b.to;
}

void change_quota(Snapshot& snapshot, const WaitingJob& job, const Change& change) {
  for (QuotaShare& share : snapshot.queues[job.queue].quota_shares)
    if (share.name == change.name)
      for (QuotaShare::Quota& quota : share.quotas)
        if (quota.unit == change.unit) quota.capacity = change.to;
}

}  // namespace

std::vector<Change> changes_for(const Snapshot& snapshot, const Policy& policy, const Plan& plan,
                                const WhatIfQuestion& question) {
  return Finder(snapshot, policy, plan, question).all();
}

Snapshot with_change(const Snapshot& snapshot, const WhatIfQuestion& question,
                     const Change& change) {
  Snapshot changed = snapshot;
  const auto job = std::ranges::lower_bound(changed.waiting, question.job, {}, &WaitingJob::job);
  CHECK(job != changed.waiting.end() && job->job == question.job, "the job waits");
  switch (change.kind) {
    case ChangeKind::raise_priority:
      job->priority = int64_t(change.to);
      break;
    case ChangeKind::shrink_gang:
    case ChangeKind::change_type:
    case ChangeKind::change_queue:
      for (const Variant& variant : question.variants)
        if (same_change(variant.change, change)) *job = variant.waiting;
      break;
    case ChangeKind::raise_limit:
      changed.limits[change.limit].total = change.to;
      break;
    case ChangeKind::raise_quota_share:
      change_quota(changed, *job, change);
      break;
    case ChangeKind::cancel_job:
      std::erase_if(changed.waiting,
                    [&](const WaitingJob& each) { return each.job == change.job; });
      break;
    case ChangeKind::end_job:
      std::erase_if(changed.running, [&](const Running& each) { return each.job == change.job; });
      break;
    case ChangeKind::add_machines:
      for (int64_t i = 0; i < int64_t(change.to); ++i)
        changed.machines.push_back(
            {std::string(kAddedMachine) + std::to_string(i + 1), change.share});
      break;
  }
  return changed;
}

}  // namespace trainyard::schedule
