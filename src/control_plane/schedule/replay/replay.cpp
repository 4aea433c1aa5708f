#include "schedule/replay/replay.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace trainyard::schedule {
namespace {

constexpr Duration kReplayTick = 1s;

double cpu_count(const std::vector<HostRequest>& requests) {
  double all = 0;
  for (const HostRequest& each : requests) all += each.share.cpus * each.count;
  return all;
}
double gpu_count(const std::vector<HostRequest>& requests) {
  double all = 0;
  for (const HostRequest& each : requests) all += double(each.share.gpus) * each.count;
  return all;
}

// Adds up the use of machines in equal parts of a period.
class UseOverTime {
 public:
  UseOverTime(Instant begin, Instant end)
      : begin_(begin), width_(double((end - begin).count()) / kReplayBuckets) {}

  void add(Instant from, Instant to, double cpus, double gpus) {
    if (width_ <= 0) return;
    const double first = std::max(0.0, double((from - begin_).count()) / width_);
    const double last = std::min(double(kReplayBuckets), double((to - begin_).count()) / width_);
    for (double at = first; at < last;) {
      const auto bucket = size_t(at);
      const double next = std::min(last, double(bucket + 1));
      cpus_[bucket] += cpus * (next - at);
      gpus_[bucket] += gpus * (next - at);
      at = next;
    }
  }
  std::vector<double> cpus() const { return cpus_; }
  std::vector<double> gpus() const { return gpus_; }

 private:
  const Instant begin_;
  const double width_;  // milliseconds
  std::vector<double> cpus_ = std::vector<double>(kReplayBuckets);
  std::vector<double> gpus_ = std::vector<double>(kReplayBuckets);
};

// VariantRun simulates one variant.
class VariantRun : public Simulation {
 public:
  // Lifetime: the history outlives it.
  VariantRun(const ReplayHistory& history, ChangedCluster changed)
      : history_(history), changed_(std::move(changed)), use_(history.begin, history.end) {
    snapshot = std::move(changed_.cluster);
    policy = history.policy;
    notice = history.notice;
    if (history.jobs.size() > kReplayExactJobsMax) tick = kReplayTick;
    begin_at(history.begin);
    add_jobs();
  }

  const UseOverTime& use() const { return use_; }
  // Counts the jobs that still run as using their machines until the end of the period.
  void close() {
    const Instant end = std::max(now(), history_.end);
    for (const Running& running : snapshot.running) count(running, end);
  }
  // Positions in the history, by job number.
  const std::vector<size_t>& positions() const { return positions_; }

 private:
  // Adds the jobs in the order of the history. Running jobs whose machine was removed wait again.
  void add_jobs() {
    numbers_.resize(history_.jobs.size());
    for (size_t at = 0; at < history_.jobs.size(); ++at)
      if (runs_already(history_.jobs[at])) number(at);
    for (size_t at = 0; at < history_.jobs.size(); ++at)
      if (numbers_[at] == 0) number(at);
    // Dependencies name positions, and the simulation numbers.
    for (const size_t at : positions_) {
      const Arrival& arrival = history_.jobs[at].arrival;
      if (arrival.after.empty()) continue;
      Arrival& renumbered = *(renumbered_[at] = std::make_unique<Arrival>(arrival));
      for (domain::JobNumber& other : renumbered.after) other = numbers_[other - 1];
    }
    for (const size_t at : positions_) {
      const RecordedJob& job = history_.jobs[at];
      const auto found = renumbered_.find(at);
      const Arrival& arrival = found == renumbered_.end() ? job.arrival : *found->second;
      if (runs_already(job))
        add_running(arrival, *job.running);
      else
        add(arrival, arrives(job.arrival.arrives));
    }
  }

  void number(size_t at) {
    positions_.push_back(at);
    numbers_[at] = positions_.size();
  }

  bool runs_already(const RecordedJob& job) const {
    if (!job.running) return false;
    return std::ranges::none_of(job.running->hosts, [&](const Placement& host) {
      return changed_.removed.contains(host.machine);
    });
  }

  Instant arrives(Instant recorded) const {
    if (recorded <= history_.begin || changed_.submit_rate == 1) return recorded;
    const double after = double((recorded - history_.begin).count()) / changed_.submit_rate;
    return history_.begin + Duration(int64_t(after));
  }

  void admitting(domain::JobNumber job, WaitingJob& waiting) const override {
    if (changed_.made_fair.contains(waiting.queue))
      waiting.share = history_.jobs[positions_[job - 1]].user;
  }
  void left(const Running& running) override { count(running, now()); }
  void count(const Running& running, Instant until) {
    double cpus = 0, gpus = 0;
    for (const Placement& host : running.hosts) {
      cpus += host.share.cpus;
      gpus += double(host.share.gpus);
    }
    use_.add(running.started, until, cpus, gpus);
  }

  const ReplayHistory& history_;
  ChangedCluster changed_;
  UseOverTime use_;
  std::vector<size_t> positions_;                          // by number
  std::vector<domain::JobNumber> numbers_;                 // by position
  std::map<size_t, std::unique_ptr<Arrival>> renumbered_;  // by position
};

WaitSummary summary_of(std::vector<Duration> waits, size_t not_started) {
  WaitSummary out{.jobs = waits.size(), .not_started = not_started};
  if (waits.empty()) return out;
  std::ranges::sort(waits);
  double sum = 0;  // of milliseconds: an integer might overflow
  for (const Duration wait : waits) sum += double(wait.count());
  out.mean = Duration(int64_t(std::llround(sum / double(waits.size()))));
  out.median = percentile_of(waits, 0.5);
  out.p95 = percentile_of(waits, 0.95);
  out.longest = waits.back();
  return out;
}

// Summarises waits, together and by group.
class WaitTable {
 public:
  explicit WaitTable(const ReplayHistory& history) : history_(history) {}

  void add(const RecordedJob& job, Duration wait, bool started) {
    all_.add(wait, started);
    const WaitingJob& waiting = job.arrival.job;
    groups_[{ReplayGrouping::queue, history_.cluster.queues[waiting.queue].name}].add(wait,
                                                                                      started);
    groups_[{ReplayGrouping::share, job.user}].add(wait, started);
    if (!waiting.requests.empty())
      groups_[{ReplayGrouping::instance_type, waiting.requests[0].instance_type}].add(wait,
                                                                                      started);
  }

  void write(ReplayOutcome& outcome) {
    outcome.waits = summary_of(std::move(all_.waits), all_.not_started);
    std::map<ReplayGrouping, std::vector<WaitGroup>> by;
    for (auto& [key, group] : groups_)
      by[key.first].push_back(
          {key.first, key.second, summary_of(std::move(group.waits), group.not_started)});
    for (auto& [grouping, some] : by) {
      std::ranges::stable_sort(
          some, [](const WaitGroup& a, const WaitGroup& b) { return a.waits.jobs > b.waits.jobs; });
      if (some.size() > kReplayGroupsMax) some.resize(kReplayGroupsMax);
      for (WaitGroup& each : some) outcome.groups.push_back(std::move(each));
    }
  }

 private:
  struct Waits {
    std::vector<Duration> waits;
    size_t not_started = 0;

    void add(Duration wait, bool started) {
      waits.push_back(wait);
      not_started += !started;
    }
  };

  const ReplayHistory& history_;
  Waits all_;
  std::map<std::pair<ReplayGrouping, std::string>, Waits> groups_;
};

void count_capacity(const Snapshot& cluster, ReplayOutcome& outcome) {
  for (const Machine& machine : cluster.machines) {
    outcome.cpus += machine.total.cpus;
    outcome.gpus += double(machine.total.gpus);
  }
}

// Returns when the job could have started: at its arrival, or the end of its dependencies.
Instant ready_at(const ReplayHistory& history, const RecordedJob& job) {
  Instant ready = job.arrival.arrives;
  for (const domain::JobNumber other : job.arrival.after) {
    const RecordedJob& awaited = history.jobs[other - 1];
    if (awaited.ended && !awaited.runs.empty()) ready = std::max(ready, awaited.runs.back().ended);
  }
  return ready;
}

ReplayOutcome recorded_outcome(const ReplayHistory& history) {
  ReplayOutcome out{.name = std::string(kReplayRecorded), .reached = history.end};
  count_capacity(history.cluster, out);
  UseOverTime use(history.begin, history.end);
  WaitTable waits(history);
  Instant last = history.begin;
  out.wait_of.resize(history.jobs.size());
  for (size_t at = 0; at < history.jobs.size(); ++at) {
    const RecordedJob& job = history.jobs[at];
    const WaitingJob& waiting = job.arrival.job;
    for (const RecordedRun& run : job.runs) {
      use.add(run.began, run.ended, cpu_count(waiting.requests), gpu_count(waiting.requests));
      last = std::max(last, run.ended);
    }
    out.preemptions += job.preemptions;
    out.lost_cpu_seconds +=
        std::chrono::duration<double>(job.lost).count() * cpu_count(waiting.requests);
    out.unfinished += !job.ended;
    if (!job.counts) continue;
    const bool started = !job.runs.empty();
    const Instant until = started ? job.runs.front().began : history.end;
    const Duration wait = std::max(Duration{}, until - ready_at(history, job));
    if (started) out.wait_of[at] = wait;
    waits.add(job, wait, started);
  }
  waits.write(out);
  out.cpus_used = use.cpus();
  out.gpus_used = use.gpus();
  out.makespan = last - history.begin;
  return out;
}

ReplayOutcome outcome_of(const ReplayHistory& history, VariantRun& run, std::string name,
                         bool complete) {
  run.close();
  ReplayOutcome out{.name = std::move(name), .complete = complete, .reached = run.now()};
  count_capacity(run.snapshot, out);
  WaitTable waits(history);
  Instant last = history.begin;
  out.wait_of.resize(history.jobs.size());
  for (size_t number = 1; number <= run.records().size(); ++number) {
    const Simulation::Record& record = run.record(number);
    const size_t at = run.positions()[number - 1];
    const RecordedJob& job = history.jobs[at];
    out.preemptions += record.preemptions;
    out.lost_cpu_seconds +=
        std::chrono::duration<double>(record.lost).count() * cpu_count(job.arrival.job.requests);
    out.unfinished += !record.ended;
    if (record.ended) last = std::max(last, *record.ended);
    if (!job.counts) continue;
    // A job that never became ready has not waited for machines.
    const Instant until = record.started.value_or(std::max(run.now(), history.end));
    const Duration wait = std::max(Duration{}, until - record.waits_since.value_or(until));
    if (record.started) out.wait_of[at] = wait;
    waits.add(job, wait, record.started.has_value());
  }
  waits.write(out);
  out.cpus_used = run.use().cpus();
  out.gpus_used = run.use().gpus();
  out.makespan = last - history.begin;
  return out;
}

void compare_starts(const ReplayOutcome& recorded, ReplayOutcome& as_it_is) {
  std::vector<Duration> errors;
  for (size_t at = 0; at < recorded.wait_of.size(); ++at)
    if (recorded.wait_of[at] && as_it_is.wait_of[at])
      errors.push_back(std::chrono::abs(*recorded.wait_of[at] - *as_it_is.wait_of[at]));
  if (errors.empty()) return;
  std::ranges::sort(errors);
  as_it_is.start_error_median = percentile_of(errors, 0.5);
  as_it_is.start_error_p95 = percentile_of(errors, 0.95);
}

class SteppedReplay : public Replay {
 public:
  SteppedReplay(ReplayHistory history, std::vector<ReplayVariant> variants, size_t plans_max)
      : history_(std::move(history)), variants_(std::move(variants)) {
    // Each run may use an equal part of the remaining plans.
    plans_each_ = std::max<size_t>(1, plans_max / variants_.size());
  }

  bool advance(const std::function<bool()>& may_continue) override {
    if (outcomes_.empty()) outcomes_.push_back(recorded_outcome(history_));
    while (outcomes_.size() <= variants_.size()) {
      const ReplayVariant& variant = variants_[outcomes_.size() - 1];
      if (!run_) {
        auto changed = with_changes(history_.cluster, variant);  // was checked by make()
        run_ = std::make_unique<VariantRun>(
            history_, changed ? *std::move(changed) : ChangedCluster{.cluster = history_.cluster});
      }
      bool complete = true;
      while (run_->next_event()) {
        if (run_->plans() >= plans_each_) {
          complete = false;
          break;
        }
        if (!may_continue()) return false;
        run_->step();
      }
      outcomes_.push_back(outcome_of(history_, *run_, variant.name, complete));
      if (outcomes_.size() == 2) compare_starts(outcomes_[0], outcomes_[1]);
      run_.reset();
    }
    return true;
  }

  double progress() const override {
    const double finished = outcomes_.empty() ? 0 : double(outcomes_.size() - 1);
    const double jobs = double(std::max<size_t>(1, history_.jobs.size()));
    const double now = run_ ? double(run_->ended()) / jobs : 0;
    return (finished + now) / double(variants_.size());
  }

  const std::vector<ReplayOutcome>& outcomes() const override { return outcomes_; }
  const ReplayHistory& history() const override { return history_; }

  std::vector<size_t> most_affected(size_t jobs_max) const override {
    // The larger of two numbers, so that few jobs are sorted by their waits in full.
    const size_t base = outcomes_.size() > 2 ? 1 : 0;
    std::vector<std::pair<Duration, size_t>> affected;
    for (size_t at = 0; at < history_.jobs.size(); ++at) {
      if (!history_.jobs[at].counts) continue;
      Duration most{};
      for (size_t other = base + 1; other < outcomes_.size(); ++other)
        most = std::max(most, difference(outcomes_[base], outcomes_[other], at));
      if (most > Duration{}) affected.emplace_back(most, at);
    }
    std::ranges::stable_sort(affected,
                             [](const auto& a, const auto& b) { return a.first > b.first; });
    if (affected.size() > jobs_max) affected.resize(jobs_max);
    std::vector<size_t> positions;
    positions.reserve(affected.size());
    for (const auto& [most, at] : affected) positions.push_back(at);
    return positions;
  }

 private:
  // A job that starts in only one outcome counts with the known part of its wait in the other.
  Duration difference(const ReplayOutcome& a, const ReplayOutcome& b, size_t at) const {
    const auto of_a = a.wait_of[at], of_b = b.wait_of[at];
    if (of_a && of_b) return std::chrono::abs(*of_a - *of_b);
    if (!of_a && !of_b) return {};
    return history_.end - history_.begin;
  }

  const ReplayHistory history_;
  const std::vector<ReplayVariant> variants_;  // the first one has no changes
  size_t plans_each_ = 1;
  std::unique_ptr<VariantRun> run_;
  std::vector<ReplayOutcome> outcomes_;
};

}  // namespace

Duration percentile_of(const std::vector<Duration>& ordered, double part) {
  if (ordered.empty()) return {};
  const auto rank = size_t(std::ceil(part * double(ordered.size())));
  return ordered[std::clamp<size_t>(rank, 1, ordered.size()) - 1];
}

Result<std::unique_ptr<Replay>> Replay::make(ReplayHistory history,
                                             std::vector<ReplayVariant> variants,
                                             size_t plans_max) {
  if (history.jobs.size() > kReplayJobsMax)
    return exhausted("more than " + std::to_string(kReplayJobsMax) +
                     " jobs: choose a shorter period");
  if (variants.size() > kReplayVariantsMax)
    return invalid("more than " + std::to_string(kReplayVariantsMax) + " variants");
  if (history.end <= history.begin) return invalid("the period ends before it begins");
  std::set<std::string_view> names{kReplayRecorded, kReplayAsIs};
  for (const ReplayVariant& variant : variants) {
    TRY(with_changes(history.cluster, variant));
    if (!names.insert(variant.name).second)
      return invalid("two variants are named " + variant.name);
  }
  for (RecordedJob& job : history.jobs)
    std::erase_if(job.arrival.after, [&](domain::JobNumber other) {
      return other == 0 || other > history.jobs.size();
    });
  variants.insert(variants.begin(), {.name = std::string(kReplayAsIs)});
  return std::unique_ptr<Replay>(
      new SteppedReplay(std::move(history), std::move(variants), plans_max));
}

}  // namespace trainyard::schedule
