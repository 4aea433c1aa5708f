// TestCluster is a small cluster in which time passes: jobs arrive, plans are carried out, jobs
// end. Tests query the outcome, and every plan is checked against the invariants.
//
// Failing hosts, agents and the ledger are not simulated here; sim/ does that.
//
// Threads: confined to one. Units: of time, milliseconds of the cluster's own clock, which begins
// at 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/plan.hpp"
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
    for (const Waiting& job : snapshot.waiting) waiting_[job.job] = &job;
  }

  // Returns "" if there is none. Call it once.
  std::string fault() {
    count_running();
    for (const Start& start : plan_.starts)
      if (const std::string fault = fault_of_start(start); !fault.empty()) return fault;
    for (const Wait& wait : plan_.waits) {
      if (waiting_.erase(wait.job) != 1)
        return "job " + std::to_string(wait.job) + " is there twice";
      if (wait.reason.empty()) return "job " + std::to_string(wait.job) + " waits for no reason";
    }
    if (!waiting_.empty()) return waiting_.begin()->second->name + " is forgotten";
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
    const Waiting& job = *found->second;
    waiting_.erase(found);
    size_t hosts = 0;
    for (const HostRequest& request : job.requests) hosts += request.count;
    if (hosts != start.hosts.size()) return job.name + " is torn";
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
  std::unordered_map<domain::JobNumber, const Waiting*> waiting_;
};

inline std::string fault_of(const Snapshot& snapshot, const Plan& plan) {
  return PlanCheck(snapshot, plan).fault();
}

class TestCluster {
 public:
  struct Work {
    Waiting job;  // its number is assigned by add()
    Duration lasts{};
    Instant arrives{};
  };
  struct Record {
    Work work;
    std::optional<Instant> started;   // for the first time
    std::optional<Instant> ended;     // for good
    std::optional<Instant> reserved;  // the first reservation
    uint32_t preemptions = 0;
    uint32_t ahead = 0;  // jobs that were waiting when it came
  };

  Snapshot snapshot;  // machines, limits and queues are set before run()
  Policy policy;
  Duration notice{};  // from being preempted to being gone
  std::function<void(const TestCluster&, const Plan&)> on_plan;

  // Requires: works are added in the order in which they arrive.
  domain::JobNumber add(Work work) {
    work.job.job = records_.size() + 1;
    if (work.job.name.empty()) work.job.name = "job/" + std::to_string(work.job.job);
    records_.push_back({std::move(work)});
    return records_.size();
  }

  // Runs until no event is left, or until that instant. False: a plan was wrong, and fault()
  // describes it.
  static constexpr size_t kPlansMax = 100'000;
  bool run(Instant until = Instant::max()) {
    while (fault_.empty()) {
      const auto next = next_event();
      if (!next || *next > until) break;
      pass_until(*next);
      end_jobs();
      admit();
      const Plan plan = schedule::plan(snapshot, policy, now_);
      fault_ = fault_of(snapshot, plan);
      if (!fault_.empty()) fault_ += ", at " + std::to_string(to_milliseconds(now_)) + " ms";
      if (fault_.empty() && ++plans_ > kPlansMax) fault_ = "it does not come to an end";
      if (on_plan) on_plan(*this, plan);
      carry_out(plan);
    }
    return fault_.empty();
  }

  const std::string& fault() const { return fault_; }
  Instant now() const { return now_; }
  size_t plans() const { return plans_; }
  const std::vector<Record>& records() const { return records_; }
  const Record& record(domain::JobNumber job) const { return records_[job - 1]; }
  double cpu_seconds(const std::string& share) const {
    const auto found = had_.find(share);
    return found == had_.end() ? 0 : found->second;
  }
  double cpu_seconds() const {
    double all = 0;
    for (const auto& [share, seconds] : had_) all += seconds;
    return all;
  }

 private:
  // The run time of jobs in queues with fair share, until now.
  Duration ran_{};
  int64_t ended_ = 0;

  std::optional<Instant> next_event() const {
    std::optional<Instant> next;
    const auto sooner = [&](Instant at) { next = next ? std::min(*next, at) : at; };
    if (arrived_ < records_.size()) sooner(records_[arrived_].work.arrives);
    for (const auto& [job, at] : ends_) sooner(at);
    return next;
  }

  void pass_until(Instant next) {
    const double seconds = std::chrono::duration<double>(next - now_).count();
    std::map<std::string, double> held;
    for (const Running& running : snapshot.running)
      for (const Placement& host : running.hosts) held[running.share] += host.share.cpus;
    for (const auto& [share, cpus] : held) had_[share] += cpus * seconds;
    for (Queue& queue : snapshot.queues) {
      if (!queue.fair) continue;
      const double window = std::chrono::duration<double>(queue.fair->decay).count();
      const double kept = std::exp(-seconds / window);
      for (FairShare::Share& share : queue.fair->shares)
        share.usage = share.usage * kept + held[share.name] * window * (1 - kept);
    }
    now_ = next;
  }

  void end_jobs() {
    std::erase_if(snapshot.running, [&](const Running& running) {
      const auto end = ends_.find(running.job);
      if (end == ends_.end() || end->second > now_) return false;
      ends_.erase(end);
      Record& record = records_[running.job - 1];
      if (running.leaving && now_ < running.started + record.work.lasts)
        again_.push_back(running.job);
      else
        record.ended = now_;
      if (running.queue && snapshot.queues[*running.queue].fair) {
        ++ended_;
        ran_ += now_ - running.started;
        snapshot.queues[*running.queue].fair->lasts = ran_ / ended_;
      }
      for (const Need& need : running.needs)
        if (need.for_good) snapshot.limits[need.limit].used_besides += need.amount;
      return true;
    });
  }

  void admit() {
    for (const domain::JobNumber job : again_) {
      const auto place = std::ranges::lower_bound(snapshot.waiting, job, {}, &Waiting::job);
      snapshot.waiting.insert(place, records_[job - 1].work.job);
    }
    again_.clear();
    for (; arrived_ < records_.size() && records_[arrived_].work.arrives <= now_; ++arrived_) {
      records_[arrived_].ahead = uint32_t(snapshot.waiting.size());
      snapshot.waiting.push_back(records_[arrived_].work.job);
    }
  }

  void carry_out(const Plan& plan) {
    for (const Preemption& each : plan.preemptions) {
      const auto running = std::ranges::find(snapshot.running, each.job, &Running::job);
      if (running == snapshot.running.end() || running->leaving) {
        fault_ = "job " + std::to_string(each.job) + " is preempted, and does not run";
        return;
      }
      ++records_[each.job - 1].preemptions;
      running->leaving = true;
      ends_[each.job] = std::min(ends_[each.job], now_ + notice);
    }
    for (const Wait& wait : plan.waits)
      if (Record& record = records_[wait.job - 1]; wait.starts_by && !record.reserved)
        record.reserved = wait.starts_by;
    if (plan.starts.empty()) return;
    std::vector<bool> starts(records_.size() + 1);
    for (const Start& start : plan.starts) {
      starts[start.job] = true;
      Record& record = records_[start.job - 1];
      const Waiting& job = record.work.job;
      if (!record.started) record.started = now_;
      ends_[start.job] = now_ + record.work.lasts;
      Running running;
      running.job = start.job;
      running.name = job.name;
      running.hosts = start.hosts;
      running.queue = job.queue;
      running.share = job.share;
      running.priority = job.priority;
      for (const Choice& choice : job.choices)
        if (choice.environment == start.environment) running.needs = choice.needs;
      running.demands = job.demands;
      if (job.lasts_max) running.ends_by = now_ + *job.lasts_max;
      running.started = now_;
      running.gives_way = !job.demands.empty();
      snapshot.running.push_back(std::move(running));
    }
    std::erase_if(snapshot.waiting, [&](const Waiting& job) { return starts[job.job]; });
  }

  std::vector<Record> records_;  // by job
  size_t arrived_ = 0;
  std::map<domain::JobNumber, Instant> ends_;
  std::vector<domain::JobNumber> again_;  // preempted and gone
  std::map<std::string, double> had_;     // vCPU seconds, by share
  Instant now_{};
  size_t plans_ = 0;
  std::string fault_;
};

}  // namespace trainyard::schedule::test
