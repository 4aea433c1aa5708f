#include "reconcile/replay_view.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "domain/array.hpp"

namespace trainyard::reconcile {
namespace {

using domain::Attempt;
using domain::Job;

// Returns the end of an attempt in the job's time; nullopt: it has not ended.
std::optional<Instant> end_of_attempt(const Job& job, const Attempt& attempt) {
  if (attempt.ended) return std::max(*attempt.ended, attempt.started);
  if (&attempt != &job.attempts.back()) return attempt.started;  // the record has no end
  if (!job.finished()) return std::nullopt;
  const Instant end = job.transitions.empty() ? job.modified : job.transitions.back().start;
  return std::max(end, attempt.started);
}

Instant end_of_job(const Job& job) {
  if (!job.attempts.empty())
    return end_of_attempt(job, job.attempts.back()).value_or(Instant::max());
  if (!job.finished()) return Instant::max();
  return job.transitions.empty() ? job.modified : job.transitions.back().start;
}

// Returns true for a preemption whose work had to be repeated.
bool is_repeated(const Job& job, const Attempt& attempt) {
  return attempt.preempted && !job.spec.checkpoint;
}

std::string replay_user_of(const Job& job) {
  if (job.spec.queue && !job.spec.queue->share.empty()) return job.spec.queue->share;
  if (job.spec.queue && !job.spec.queue->quota_share.empty()) return job.spec.queue->quota_share;
  return job.spec.principal;
}

// Returns the job as it was when it was submitted.
Job as_submitted(Job job, domain::JobNumber number) {
  job.number = number;
  job.state = domain::JobState::waiting;
  job.attempts.clear();
  if (!job.spec.preferences.empty()) job.spec.groups = {job.spec.preferences.front()};
  job.selected.reset();
  job.stop_requested.reset();
  job.stop_cause = domain::StopCause::none;
  job.warm_pool.reset();
  job.clock_offset = {};
  return job;
}

std::vector<std::string> dependencies_of(const Job& job) {
  std::vector<std::string> names = job.spec.depends_on;
  const auto child = domain::parse_child_name(job.key.name);
  if (!child) return names;
  for (const std::string& array : job.spec.depends_on_alike)
    names.push_back(array + ":" + std::to_string(child->index));
  if (job.spec.array.sequential && child->index > 0)
    names.push_back(child->array + ":" + std::to_string(child->index - 1));
  return names;
}

}  // namespace

ReplayHistoryBuilder::ReplayHistoryBuilder(const Snapshot& settings, const schedule::Policy& policy,
                                           const Timeout& timeout, ReplayPeriod period)
    : settings_(settings),
      policy_(policy),
      timeout_(timeout),
      period_(period),
      view_(settings.machines, settings.catalog.get(), usages_, settings.quotas,
            {timeout.launch, timeout.stop_grace, timeout.stop_upload}, period.begin) {}

void ReplayHistoryBuilder::add(Job job) {
  if (job.is_array() || job.created >= period_.end) return;
  if (!seen_.insert(job.number).second) return;
  try {
    add_job(std::move(job));
  } catch (const std::exception&) {  // the job's data is invalid
    ++counts_.unplaceable;
  }
}

void ReplayHistoryBuilder::add_job(Job job) {
  if (end_of_job(job) <= period_.begin) return count_usage(job);
  if (job.attempts.empty() && job.finished()) {
    ++counts_.never_started;
    return;
  }
  Entry entry{.key = job.key, .created = job.created, .number = job.number};
  entry.job.user = replay_user_of(job);
  entry.job.counts = job.created >= period_.begin;
  entry.job.arrival.arrives = job.created;
  entry.job.arrival.resumes = job.spec.checkpoint.has_value();
  entry.after = dependencies_of(job);
  record_runs(job, entry);
  const bool ran_at_begin = !job.attempts.empty() && job.attempts.back().started <= period_.begin;
  auto waiting = view_.wait(as_submitted(job, entries_.size() + 1), {});
  if (!waiting) {
    ++counts_.unplaceable;
    return;
  }
  counts_.estimated += entry.job.estimated;
  counts_.still_running += !entry.job.ended && !entry.job.estimated;
  entries_.push_back(std::move(entry));
  if (!ran_at_begin || job.attempts.back().hosts.empty()) return;
  hold(std::move(job), period_.begin);
}

// Counts vCPU of the current attempt, since only this one has hosts.
void ReplayHistoryBuilder::count_usage(const Job& job) {
  const auto share = domain::share_of(job);
  if (!share || job.attempts.empty() || !settings_.catalog) return;
  const Attempt& attempt = job.attempts.back();
  const Instant ended = end_of_job(job);
  if (ended < period_.begin - kReplayUsageBefore || ended <= attempt.started) return;
  const Duration decay = batch::decay_of(*settings_.catalog, share->queue);
  const double cpus = domain::cpus_of(attempt);
  const domain::Usage used = domain::decayed(
      {domain::used_since(cpus, attempt.started, decay, ended), ended, cpus}, decay, period_.begin);
  domain::Usage& sum = usages_[*share];
  sum.cpu_seconds += used.cpu_seconds;
  sum.cpus += used.cpus;
  sum.at = period_.begin;
}

void ReplayHistoryBuilder::record_runs(const Job& job, Entry& entry) const {
  schedule::RecordedJob& out = entry.job;
  Duration held{};
  for (const Attempt& attempt : job.attempts) {
    const Instant ended =
        end_of_attempt(job, attempt).value_or(std::max(period_.now, attempt.started));
    out.runs.push_back({attempt.started, ended});
    out.preemptions += attempt.preempted;
    if (is_repeated(job, attempt))
      out.lost += ended - attempt.started;
    else
      held += ended - attempt.started;
  }
  out.ended = job.finished();
  out.estimated = job.attempts.empty();
  if (out.ended) out.arrival.lasts = held;
}

void ReplayHistoryBuilder::hold(Job job, Instant begin) {
  Attempt attempt = job.attempts.back();
  schedule::RecordedJob& recorded = entries_.back().job;
  if (recorded.ended) recorded.arrival.lasts = end_of_job(job) - attempt.started;
  attempt.state = domain::AttemptState::running;
  attempt.ended.reset();
  attempt.interrupted.reset();
  attempt.first_failed.reset();
  if (attempt.training_started > begin) attempt.training_started.reset();
  job.number = entries_.size();
  job.attempts = {std::move(attempt)};
  job.state = domain::JobState::active;
  job.stop_requested.reset();
  job.stop_cause = domain::StopCause::none;
  job.clock_offset = {};
  view_.hold(job);
  running_.push_back(entries_.size() - 1);
}

// Assumes that jobs that have not started last as long as the median of their queue.
void ReplayHistoryBuilder::assume_durations(std::vector<Entry*>& ordered) {
  std::map<size_t, std::vector<Duration>> known;  // by queue
  for (const Entry* entry : ordered)
    if (entry->job.arrival.lasts)
      known[entry->job.arrival.job.queue].push_back(*entry->job.arrival.lasts);
  for (auto& [queue, durations] : known) std::ranges::sort(durations);
  for (Entry* entry : ordered) {
    schedule::Arrival& arrival = entry->job.arrival;
    if (!entry->job.estimated) continue;
    const auto found = known.find(arrival.job.queue);
    arrival.lasts =
        found == known.end() ? arrival.job.lasts_max : schedule::percentile_of(found->second, 0.5);
  }
}

// Replaces names of jobs by positions.
void ReplayHistoryBuilder::link(std::vector<Entry*>& ordered) {
  std::map<domain::JobKey, size_t> positions;
  std::map<domain::JobKey, std::pair<Instant, size_t>> last_children;  // by array
  for (size_t at = 0; at < ordered.size(); ++at) {
    const Entry& entry = *ordered[at];
    positions[entry.key] = at + 1;
    const auto child = domain::parse_child_name(entry.key.name);
    if (!child) continue;
    const Instant end =
        entry.job.ended && !entry.job.runs.empty() ? entry.job.runs.back().ended : Instant::max();
    auto& last = last_children[{entry.key.region, child->array}];
    last = std::max(last, {end, at + 1});
  }
  for (Entry* entry : ordered)
    for (const std::string& name : entry->after) {
      const domain::JobKey key{entry->key.region, name};
      if (const auto job = positions.find(key); job != positions.end())
        entry->job.arrival.after.push_back(job->second);
      else if (const auto array = last_children.find(key); array != last_children.end())
        entry->job.arrival.after.push_back(array->second.second);
    }
}

schedule::ReplayHistory ReplayHistoryBuilder::take() {
  schedule::ReplayHistory history{.begin = period_.begin,
                                  .end = period_.end,
                                  .cluster = view_.take(),
                                  .policy = policy_,
                                  .notice = timeout_.spot_notice};
  CHECK(history.cluster.waiting.size() == entries_.size(), "each job waits in the view once");
  for (size_t i = 0; i < entries_.size(); ++i) {
    schedule::Arrival& arrival = entries_[i].job.arrival;
    arrival.job = std::move(history.cluster.waiting[i]);
    arrival.job.name = std::string();  // used only in texts that are not shown
  }
  for (size_t i = 0; i < running_.size(); ++i) {
    schedule::Running& running = history.cluster.running[i];
    running.name = "job/" + std::to_string(running_[i] + 1);
    entries_[running_[i]].job.running = std::move(running);
  }
  history.cluster.waiting.clear();
  history.cluster.running.clear();
  std::vector<Entry*> ordered;
  ordered.reserve(entries_.size());
  for (Entry& entry : entries_) ordered.push_back(&entry);
  std::ranges::stable_sort(ordered, [](const Entry* a, const Entry* b) {
    const auto rank = [](const Entry* entry) {
      return std::tuple(!entry->job.running, entry->created, entry->number);
    };
    return rank(a) < rank(b);
  });
  assume_durations(ordered);
  link(ordered);
  for (Entry* entry : ordered) {
    keys_.push_back(std::move(entry->key));
    history.jobs.push_back(std::move(entry->job));
  }
  entries_.clear();
  return history;
}

}  // namespace trainyard::reconcile
