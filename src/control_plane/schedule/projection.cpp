#include "schedule/projection.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "schedule/plan_effects.hpp"

namespace trainyard::schedule {
namespace {

class Projection {
 public:
  Projection(Snapshot snapshot, const Policy& policy, Instant now, Duration preemption_takes)
      : snapshot_(std::move(snapshot)),
        policy_(policy),
        now_(now),
        preemption_takes_(preemption_takes) {}

  std::optional<Instant> start_of(domain::JobNumber job, PlanBudget& budget) {
    for (size_t plans = 0; plans < kProjectedPlansMax && budget.take(snapshot_); ++plans) {
      const Plan plan = schedule::plan(snapshot_, policy_, now_);
      if (std::ranges::find(plan.starts, job, &Start::job) != plan.starts.end()) return now_;
      const auto wait = std::ranges::find(plan.waits, job, &Wait::job);
      if (wait != plan.waits.end() && wait->starts_by) return wait->starts_by;
      carry_out(plan);
      if (!pass_to_next_end()) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  void carry_out(const Plan& plan) {
    for (const Preemption& each : plan.preemptions) {
      const auto running = std::ranges::find(snapshot_.running, each.job, &Running::job);
      if (running == snapshot_.running.end()) continue;
      running->leaving = true;
      running->gives_way = false;
      const Instant gone = now_ + preemption_takes_;
      running->ends_by = std::min(running->ends_by.value_or(gone), gone);
    }
    std::set<domain::JobNumber> started;
    for (const Start& start : plan.starts) {
      started.insert(start.job);
      const auto job = std::ranges::lower_bound(snapshot_.waiting, start.job, {}, &WaitingJob::job);
      snapshot_.running.push_back(running_of(*job, start, now_));
      if (start.pool != 0)
        std::erase_if(snapshot_.pools, [&](const Pool& pool) { return pool.of == start.pool; });
    }
    std::erase_if(snapshot_.waiting,
                  [&](const WaitingJob& job) { return started.contains(job.job); });
  }

  // An overdue end is the next one.
  Instant at_the_earliest(Instant end) const { return std::max(end, now_ + 1ms); }

  // Returns false if nothing ends at a known instant.
  bool pass_to_next_end() {
    std::optional<Instant> next;
    const auto consider = [&](const std::optional<Instant>& end) {
      if (end) next = std::min(next.value_or(Instant::max()), at_the_earliest(*end));
    };
    for (const Running& running : snapshot_.running) consider(running.ends_by);
    for (const Pool& pool : snapshot_.pools) consider(pool.until);
    if (!next) return false;
    count_usage(snapshot_, *next - now_);
    now_ = *next;
    std::erase_if(snapshot_.running, [&](const Running& running) {
      if (!running.ends_by || *running.ends_by > now_) return false;
      for (const Need& need : running.needs)
        if (need.for_good) snapshot_.limits[need.limit].used_besides += need.amount;
      return true;
    });
    std::erase_if(snapshot_.pools,
                  [&](const Pool& pool) { return pool.until && *pool.until <= now_; });
    return true;
  }

  Snapshot snapshot_;
  const Policy& policy_;
  Instant now_;
  const Duration preemption_takes_;
};

}  // namespace

bool PlanBudget::take(const Snapshot& snapshot) {
  const size_t entries =
      1 + snapshot.waiting.size() + snapshot.running.size() + snapshot.machines.size();
  if (plans_left_ == 0 || entries > entries_left_) {
    spent_ = true;
    return false;
  }
  --plans_left_;
  entries_left_ -= entries;
  return true;
}

std::optional<Instant> projected_start(Snapshot snapshot, const Policy& policy, Instant now,
                                       domain::JobNumber job, Duration preemption_takes,
                                       PlanBudget& budget) {
  return Projection(std::move(snapshot), policy, now, preemption_takes).start_of(job, budget);
}

}  // namespace trainyard::schedule
