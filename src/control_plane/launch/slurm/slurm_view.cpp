#include "launch/slurm/slurm_view.hpp"

#include <algorithm>
#include <exception>

#include "base/log.hpp"

namespace trainyard::launch {

SlurmView::SlurmView(std::unique_ptr<Slurm> slurm, Clock& clock, bool own_thread)
    : slurm_(std::move(slurm)), clock_(clock), ended_(clock) {
  if (own_thread) thread_ = std::thread([this] { run(); });
}

SlurmView::~SlurmView() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  slurm_->stop();
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<void> SlurmView::read() {
  uint64_t changes = 0;
  {
    const MutexLock lock(mutex_);
    changes = changes_;
  }
  auto answer = query(changes);
  const Result<void> done = answer ? Result<void>() : Result<void>(answer.error());
  const MutexLock lock(mutex_);
  keep(std::move(answer));
  return done;
}

std::shared_ptr<const SlurmAnswer> SlurmView::query_now() {
  if (!thread_.joinable()) return last();
  MutexLock lock(mutex_);
  const bool idle = querying_since_ == std::chrono::nanoseconds(0);
  const uint64_t mine = ++requested_;
  changed_.notify_all();
  if (idle && away_.empty())
    changed_.wait_for(lock, kWaitMax, [&]() REQUIRES(mutex_) { return done_ >= mine; });
  return answer_;
}

std::shared_ptr<const SlurmAnswer> SlurmView::refresh(Duration age_max) {
  if (!thread_.joinable()) return last();
  const MutexLock lock(mutex_);
  const bool queries = requested_ > done_;
  if (queries || (answered_ + age_max > clock_.monotonic() && away_.empty())) return answer_;
  ++requested_;
  changed_.notify_all();
  return answer_;
}

std::shared_ptr<const SlurmAnswer> SlurmView::last() {
  if (!thread_.joinable()) (void)read();  // why_away() tells
  const MutexLock lock(mutex_);
  return answer_;
}

std::string SlurmView::why_away() const {
  const MutexLock lock(mutex_);
  if (!away_.empty()) return away_;
  if (querying_since_ != std::chrono::nanoseconds(0) &&
      clock_.monotonic() - querying_since_ > kQuickMax)
    return "slurmctld has not answered for more than " + std::to_string(kQuickMax / Duration(1s)) +
           " s";
  return "";
}

uint64_t SlurmView::note_change() {
  const MutexLock lock(mutex_);
  return ++changes_;
}

void SlurmView::note_away(const std::string& why) {
  const MutexLock lock(mutex_);
  away_ = why;
  ++requested_;
  changed_.notify_all();
}

void SlurmView::run() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&]() REQUIRES(mutex_) { return requested_ > done_ || stopped_; });
    if (stopped_) return;
    const uint64_t number = requested_;
    const uint64_t changes = changes_;
    querying_since_ = std::max(clock_.monotonic(), std::chrono::nanoseconds(1));
    lock.unlock();
    Result<SlurmAnswer> answer = [&]() -> Result<SlurmAnswer> {
      try {
        return query(changes);
      } catch (const std::exception& fault) {
        return internal(std::string("reading Slurm's answer: ") + fault.what());
      }
    }();
    lock.lock();
    querying_since_ = std::chrono::nanoseconds(0);
    const bool failed = !answer;
    keep(std::move(answer));
    done_ = number;
    changed_.notify_all();
    if (failed)
      changed_.wait_for(lock, kPauseAfterFailure, [&]() REQUIRES(mutex_) { return stopped_; });
  }
}

Result<SlurmAnswer> SlurmView::query(uint64_t changes) {
  SlurmAnswer answer;
  answer.changes = changes;
  answer.sent = clock_.now();
  answer.jobs = TRY(slurm_->jobs());
  ended_.complete(*slurm_, answer.jobs);
  std::ranges::sort(answer.jobs, {}, &SlurmJob::id);
  answer.nodes = TRY(slurm_->nodes());
  return answer;
}

void SlurmView::keep(Result<SlurmAnswer> answer) {
  if (answer) {
    answered_ = clock_.monotonic();
    answer_ = std::make_shared<const SlurmAnswer>(*std::move(answer));
    if (!away_.empty()) log(Level::info, "launch", "Slurm answers again");
    away_.clear();
    return;
  }
  if (away_ != answer.error().message && !stopped_)
    log(Level::warning, "launch", "cannot query Slurm; using its last answer",
        {{"why", answer.error().message}});
  away_ = answer.error().message;
}

}  // namespace trainyard::launch
