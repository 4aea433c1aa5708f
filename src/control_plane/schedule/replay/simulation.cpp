#include "schedule/replay/simulation.hpp"

#include <algorithm>

#include "schedule/plan_effects.hpp"

namespace trainyard::schedule {
domain::JobNumber Simulation::add(const Arrival& work, Instant arrives) {
  records_.push_back({.work = work, .arrives = arrives});
  return records_.size();
}

domain::JobNumber Simulation::add_running(const Arrival& work, Running running) {
  records_.push_back({.work = work,
                      .arrives = work.arrives,
                      .waits_since = work.arrives,
                      .started = running.started});
  running.job = records_.size();
  if (work.lasts) set_end(running.job, running.started + *work.lasts);
  snapshot.running.push_back(std::move(running));
  return arrived_ = records_.size();
}

std::optional<Instant> Simulation::next_event() const {
  std::optional<Instant> next;
  if (arrived_ < records_.size()) next = records_[arrived_].arrives;
  if (!by_end_.empty()) next = std::min(next.value_or(Instant::max()), by_end_.begin()->first);
  if (!next) return next;
  if (tick > Duration{}) {
    const Duration over = next->time_since_epoch() % tick;
    if (over > Duration{}) *next += tick - over;
  }
  return std::max(*next, now_);
}

void Simulation::step() {
  pass_until(*next_event());
  end_jobs();
  admit();
  const Plan plan = schedule::plan(snapshot, policy, now_);
  ++plans_;
  planned(plan);
  carry_out(plan);
}

double Simulation::cpu_seconds(const std::string& share) const {
  const auto found = had_.find(share);
  return found == had_.end() ? 0 : found->second;
}

double Simulation::cpu_seconds() const {
  double all = 0;
  for (const auto& [share, seconds] : had_) all += seconds;
  return all;
}

void Simulation::pass_until(Instant next) {
  const Duration passed = next - now_;
  now_ = next;
  if (passed <= Duration{}) return;
  const double seconds = std::chrono::duration<double>(passed).count();
  for (const Running& running : snapshot.running)
    for (const Placement& host : running.hosts) had_[running.share] += host.share.cpus * seconds;
  count_usage(snapshot, passed);
}

void Simulation::set_end(domain::JobNumber job, Instant at) {
  if (const auto before = ends_.find(job); before != ends_.end())
    by_end_.erase({before->second, job});
  ends_[job] = at;
  by_end_.emplace(at, job);
}

void Simulation::end_jobs() {
  if (by_end_.empty() || by_end_.begin()->first > now_) return;
  std::erase_if(snapshot.running, [&](const Running& running) { return end_if_due(running); });
}

bool Simulation::end_if_due(const Running& running) {
  const auto end = ends_.find(running.job);
  if (end == ends_.end() || end->second > now_) return false;
  by_end_.erase({end->second, running.job});
  ends_.erase(end);
  Record& record = records_[running.job - 1];
  const Duration ran = now_ - running.started;
  if (running.leaving && (!record.work.lasts || record.done + ran < *record.work.lasts)) {
    (record.work.resumes ? record.done : record.lost) += ran;
    joining_.push_back(running.job);
  } else {
    finish(running.job);
  }
  if (running.queue && snapshot.queues[*running.queue].fair) {
    Durations& durations = durations_[*running.queue];
    durations.all += ran;
    snapshot.queues[*running.queue].fair->lasts = durations.all / ++durations.count;
  }
  for (const Need& need : running.needs)
    if (need.for_good) snapshot.limits[need.limit].used_besides += need.amount;
  left(running);
  return true;
}

void Simulation::finish(domain::JobNumber job) {
  records_[job - 1].ended = now_;
  ++ended_;
  const auto waiting = dependents_.find(job);
  if (waiting == dependents_.end()) return;
  for (const domain::JobNumber dependent : waiting->second)
    if (--open_dependencies_[dependent] == 0) {
      open_dependencies_.erase(dependent);
      joining_.push_back(dependent);
    }
  dependents_.erase(waiting);
}

void Simulation::admit() {
  for (const domain::JobNumber job : joining_) join_queue(job);
  joining_.clear();
  for (; arrived_ < records_.size() && records_[arrived_].arrives <= now_; ++arrived_)
    arrive(arrived_ + 1);
}

void Simulation::arrive(domain::JobNumber job) {
  size_t awaited = 0;
  for (const domain::JobNumber other : records_[job - 1].work.after)
    if (other != job && !records_[other - 1].ended) {
      ++awaited;
      dependents_[other].push_back(job);
    }
  if (awaited > 0)
    open_dependencies_[job] = awaited;
  else
    join_queue(job);
}

void Simulation::join_queue(domain::JobNumber job) {
  Record& record = records_[job - 1];
  if (!record.waits_since) {
    record.waits_since = record.work.after.empty() ? record.arrives : now_;
    record.ahead = uint32_t(snapshot.waiting.size());
  }
  WaitingJob waiting = record.work.job;
  waiting.job = job;
  if (waiting.name.empty()) waiting.name = "job/" + std::to_string(job);
  admitting(job, waiting);
  if (auto& fair = snapshot.queues[waiting.queue].fair;
      fair &&
      std::ranges::find(fair->shares, waiting.share, &FairShare::Share::name) == fair->shares.end())
    fair->shares.push_back({waiting.share, 1, 0});
  const auto place = std::ranges::lower_bound(snapshot.waiting, job, {}, &WaitingJob::job);
  snapshot.waiting.insert(place, std::move(waiting));
}

void Simulation::preempt(domain::JobNumber job) {
  const auto running = std::ranges::find(snapshot.running, job, &Running::job);
  if (running == snapshot.running.end() || running->leaving) return;
  ++records_[job - 1].preemptions;
  running->leaving = true;
  const auto end = ends_.find(job);
  set_end(job, end == ends_.end() ? now_ + notice : std::min(end->second, now_ + notice));
}

void Simulation::carry_out(const Plan& plan) {
  for (const Preemption& each : plan.preemptions) preempt(each.job);
  for (const Wait& wait : plan.waits)
    if (Record& record = records_[wait.job - 1]; wait.starts_by && !record.reserved)
      record.reserved = wait.starts_by;
  if (plan.starts.empty()) return;
  std::set<domain::JobNumber> started;
  for (const Start& start : plan.starts) {
    started.insert(start.job);
    Record& record = records_[start.job - 1];
    if (!record.started) record.started = now_;
    if (record.work.lasts) set_end(start.job, now_ + *record.work.lasts - record.done);
    const auto waiting =
        std::ranges::lower_bound(snapshot.waiting, start.job, {}, &WaitingJob::job);
    snapshot.running.push_back(running_of(*waiting, start, now_));
  }
  std::erase_if(snapshot.waiting, [&](const WaitingJob& job) { return started.contains(job.job); });
}

}  // namespace trainyard::schedule
