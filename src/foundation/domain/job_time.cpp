#include "domain/job_time.hpp"

#include <algorithm>

namespace trainyard::domain {
namespace {

constexpr EnumTable<TimeUse> kTimeUses{"use of time",
                                       {{TimeUse::queued, "Queued"},
                                        {TimeUse::starting, "Starting"},
                                        {TimeUse::downloading, "Downloading"},
                                        {TimeUse::training, "Training"},
                                        {TimeUse::lost, "Lost"},
                                        {TimeUse::uploading, "Uploading"},
                                        {TimeUse::interrupted, "Interrupted"},
                                        {TimeUse::stopping, "Stopping"},
                                        {TimeUse::queued_again, "QueuedAgain"}}};

TimeUse use_of(Phase phase) {
  switch (phase) {
    case Phase::starting:
    case Phase::pending:
    case Phase::restarting:
      return TimeUse::starting;
    case Phase::downloading:
      return TimeUse::downloading;
    case Phase::training:
      return TimeUse::training;
    case Phase::uploading:
      return TimeUse::uploading;
    case Phase::interrupted:
      return TimeUse::interrupted;
    case Phase::stopping:
    case Phase::completed:
    case Phase::failed:
    case Phase::stopped:
    case Phase::max_runtime_exceeded:
    case Phase::max_wait_time_exceeded:
      return TimeUse::stopping;
  }
  return TimeUse::stopping;
}

Instant end_of(const Job& job, Instant now) {
  if (!job.finished()) return now;
  if (job.transitions.empty()) return job.modified;
  const Transition& last = job.transitions.back();
  return last.end.value_or(last.start);
}

// Returns true if another attempt followed and had no checkpoint to continue from.
bool is_lost(const Job& job, const Attempt& attempt) {
  return &attempt != &job.attempts.back() && !job.spec.checkpoint;
}

// Splitter covers the time from the creation to the end by one interval after the other. Instants
// of a record may be out of order, because hosts have different clocks; an interval never begins
// before the end of the previous one.
class Splitter {
 public:
  Splitter(Instant begin, Instant end) : reached_(begin), end_(std::max(begin, end)) {}

  void until(Instant end, TimeUse use, uint32_t attempt) {
    end = std::min(end, end_);
    if (end <= reached_) return;
    if (!intervals_.empty() && intervals_.back().use == use && intervals_.back().attempt == attempt)
      intervals_.back().end = end;
    else
      intervals_.push_back({use, attempt, reached_, end});
    reached_ = end;
  }
  Instant end() const { return end_; }
  std::vector<TimeInterval> take() { return std::move(intervals_); }

 private:
  Instant reached_;
  const Instant end_;
  std::vector<TimeInterval> intervals_;
};

double part(Duration of, Duration whole) {
  return whole > Duration{} ? double(of.count()) / double(whole.count()) : 0;
}

}  // namespace

std::string_view to_string(TimeUse use) { return kTimeUses.text(use); }

std::vector<TimeInterval> time_intervals(const Job& job, Instant now) {
  Splitter splitter(job.created, end_of(job, now));
  auto phase = job.transitions.begin();
  for (const Attempt& attempt : job.attempts) {
    const bool first = &attempt == &job.attempts.front(), last = &attempt == &job.attempts.back();
    splitter.until(attempt.started, first ? TimeUse::queued : TimeUse::queued_again, 0);
    const bool open = !attempt.ended || (last && job.finished());
    const Instant ended = open ? splitter.end() : *attempt.ended;
    // Adds the phases that end after the attempt started. A phase may continue in the next attempt.
    TimeUse use = TimeUse::starting;
    for (; phase != job.transitions.end(); ++phase) {
      if (phase->end && *phase->end <= attempt.started) continue;
      if (phase->start >= ended) break;
      use = use_of(phase->phase);
      if (use == TimeUse::training && is_lost(job, attempt)) use = TimeUse::lost;
      splitter.until(std::min(phase->end.value_or(ended), ended), use, attempt.number);
      if (!phase->end || *phase->end > ended) break;
    }
    splitter.until(ended, use, attempt.number);
  }
  const bool waits_again = !job.attempts.empty();
  splitter.until(splitter.end(), waits_again ? TimeUse::queued_again : TimeUse::queued, 0);
  return splitter.take();
}

JobTime time_of(const Job& job, Instant now) {
  JobTime time;
  for (const TimeInterval& interval : time_intervals(job, now)) {
    const Duration length = interval.end - interval.begin;
    time.of[size_t(interval.use)] += length;
    time.wall += length;
    if (interval.attempt == 0) continue;
    time.held += length;
    if (interval.use == TimeUse::training && interval.attempt != job.attempts.back().number)
      time.lost_is_known = false;
  }
  return time;
}

double JobTime::effective_ratio() const { return part(in(TimeUse::training), wall); }
double JobTime::goodput() const { return part(in(TimeUse::training), held); }

}  // namespace trainyard::domain
