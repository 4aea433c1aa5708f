// TestCluster is a simulated cluster (simulation.hpp) for tests. It checks every plan against the
// invariants, and keeps the outcome for tests.
//
// Threads: confined to one. Units: of time, milliseconds of the cluster's own clock, which begins
// at 0.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/plan.hpp"
#include "schedule/replay/simulation.hpp"
#include "schedule/shares.hpp"

namespace trainyard::schedule::test {

// Describes the first invariant that a plan violates: capacity that is allocated twice, a job
// without an answer, a gang that is not whole.
class PlanCheck {
 public:
  // Lifetime: both outlive it.
  PlanCheck(const Snapshot& snapshot, const Plan& plan)
      : snapshot_(snapshot), plan_(plan), quota_(snapshot.queues.size()) {
    for (const Machine& machine : snapshot.machines) free_[machine.name] = machine.total;
    for (const Limit& limit : snapshot.limits) limits_.push_back(limit.total - limit.used_besides);
    for (const WaitingJob& job : snapshot.waiting) waiting_[job.job] = &job;
  }

  // Returns "" if there is none. Call it once.
  std::string fault() {
    count_running();
    for (const Start& start : plan_.starts)
      if (const std::string fault = fault_of_start(start); !fault.empty()) return fault;
    for (const Wait& wait : plan_.waits) {
      if (waiting_.erase(wait.job) != 1)
        return "job " + std::to_string(wait.job) + " is there twice";
      if (wait.reason.empty()) return "job " + std::to_string(wait.job) + " waits without a reason";
    }
    if (!waiting_.empty()) return waiting_.begin()->second->name + " is missing in the plan";
    for (const auto& [name, left] : free_)
      if (left.cpus < -kRounding || left.memory_bytes < 0 || left.gpus < 0)
        return "machine " + std::string(name) + " is overcommitted";
    for (size_t i = 0; i < limits_.size(); ++i)
      if (limits_[i] < -kRounding) return snapshot_.limits[i].name + " is overcommitted";
    for (size_t queue = 0; queue < snapshot_.queues.size(); ++queue)
      if (const std::string fault = fault_of_quotas(queue); !fault.empty()) return fault;
    return "";
  }

 private:
  static constexpr double kRounding = 1e-5;

  // Returns the vCPU of the hosts.
  double use(const std::vector<Placement>& hosts) {
    double cpus = 0;
    for (const Placement& host : hosts) {
      if (!free_.contains(host.machine)) continue;
      free_[host.machine] = minus(free_[host.machine], host.share);
      cpus += host.share.cpus;
    }
    return cpus;
  }
  void need(const std::vector<Need>& needs, double cpus) {
    for (const Need& each : needs) limits_[each.limit] -= each.cpus ? cpus : each.amount;
  }
  void demand(size_t queue, const std::string& share, const std::vector<Demand>& demands) {
    for (const Demand& demand : demands) quota_[queue][share][demand.unit] += demand.amount;
  }

  void count_running() {
    for (const Running& running : snapshot_.running) {
      need(running.needs, use(running.hosts));
      if (running.queue) demand(*running.queue, running.share, running.demands);
    }
    for (const Pool& pool : snapshot_.pools)
      if (!std::ranges::any_of(plan_.starts,
                               [&](const Start& start) { return start.pool == pool.of; }))
        use(pool.hosts);
  }

  std::string fault_of_start(const Start& start) {
    const auto found = waiting_.find(start.job);
    if (found == waiting_.end()) return "job " + std::to_string(start.job) + " is there twice";
    const WaitingJob& job = *found->second;
    waiting_.erase(found);
    size_t hosts = 0;
    for (const HostRequest& request : job.requests) hosts += request.count;
    if (hosts != start.hosts.size()) return job.name + " does not start whole";
    const double cpus = use(start.hosts);
    const auto choice = std::ranges::find(job.choices, start.environment, &Choice::environment);
    if (choice != job.choices.end()) need(choice->needs, cpus);
    if (choice == job.choices.end() && !job.choices.empty())
      return job.name + " is in no environment";
    demand(job.queue, job.share, job.demands);
    return "";
  }

  std::string fault_of_quotas(size_t queue) {
    std::map<std::string, double> beyond, idle;  // by unit
    for (const QuotaShare& share : snapshot_.queues[queue].quota_shares)
      for (const QuotaShare::Quota& each : share.quotas) {
        const double over = quota_[queue][share.name][each.unit] - each.capacity;
        if (over > kRounding && !share.borrows)
          return "quota share " + share.name + " has more than its own";
        if (over > kRounding && share.borrow_max &&
            over > *share.borrow_max * each.capacity + kRounding)
          return "quota share " + share.name + " has borrowed too much";
        if (over > 0) beyond[each.unit] += over;
        if (over < 0 && share.lends) idle[each.unit] -= over;
      }
    for (const auto& [unit, amount] : beyond)
      if (amount > idle[unit] + kRounding) return "more " + unit + " are borrowed than lent";
    return "";
  }

  const Snapshot& snapshot_;
  const Plan& plan_;
  std::unordered_map<std::string_view, Share> free_;
  std::vector<double> limits_;
  std::vector<std::map<std::string, std::map<std::string, double>>> quota_;  // share, unit
  std::unordered_map<domain::JobNumber, const WaitingJob*> waiting_;
};

inline std::string fault_of(const Snapshot& snapshot, const Plan& plan) {
  return PlanCheck(snapshot, plan).fault();
}

class TestCluster : public Simulation {
 public:
  using Work = Arrival;

  std::function<void(const TestCluster&, const Plan&)> on_plan;

  // Requires: works are added in the order in which they arrive.
  domain::JobNumber add(Work work) {
    works_.push_back(std::move(work));
    return Simulation::add(works_.back(), works_.back().arrives);
  }

  // Runs until no event is left, or until that instant. Returns false if a plan was wrong; fault()
  // describes it.
  static constexpr size_t kPlansMax = 100'000;
  bool run(Instant until = Instant::max()) {
    while (fault_.empty()) {
      const auto next = next_event();
      if (!next || *next > until) break;
      step();
    }
    return fault_.empty();
  }

  const std::string& fault() const { return fault_; }

 private:
  void planned(const Plan& plan) override {
    fault_ = fault_of(snapshot, plan);
    for (const Preemption& each : plan.preemptions) {
      const auto running = std::ranges::find(snapshot.running, each.job, &Running::job);
      if (running == snapshot.running.end() || running->leaving)
        fault_ = "job " + std::to_string(each.job) + " is preempted, and does not run";
    }
    if (!fault_.empty()) fault_ += ", at " + std::to_string(to_milliseconds(now())) + " ms";
    if (fault_.empty() && plans() > kPlansMax) fault_ = "the simulation does not end";
    if (on_plan) on_plan(*this, plan);
  }

  std::deque<Work> works_;  // the Work of each record
  std::string fault_;
};

}  // namespace trainyard::schedule::test
