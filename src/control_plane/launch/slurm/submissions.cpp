#include "launch/slurm/submissions.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.hpp"

namespace trainyard::launch {

bool is_rejection(const Error& error) {
  return error.kind == Kind::invalid || error.kind == Kind::denied ||
         error.kind == Kind::not_found || error.kind == Kind::exhausted;
}

Submissions::Submissions(std::unique_ptr<Slurm> slurm, SubmissionHooks hooks, bool own_thread)
    : slurm_(std::move(slurm)), hooks_(std::move(hooks)) {
  if (own_thread) thread_ = std::thread([this] { run(); });
}

Submissions::~Submissions() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  slurm_->stop();
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Submissions::add(Submission submission) {
  if (!thread_.joinable()) {
    auto outcome = submit(submission);
    const MutexLock lock(mutex_);
    return done_.push_back(std::move(outcome));
  }
  {
    const MutexLock lock(mutex_);
    waiting_.push_back(std::move(submission));
  }
  changed_.notify_all();
}

std::vector<SubmissionOutcome> Submissions::take() {
  const MutexLock lock(mutex_);
  return std::exchange(done_, {});
}

bool Submissions::cancel(const domain::AttemptId& attempt) {
  const MutexLock lock(mutex_);
  return std::erase_if(waiting_, [&](const Submission& each) { return each.attempt == attempt; }) >
         0;
}

void Submissions::run() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&]() REQUIRES(mutex_) { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    const Submission next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    SubmissionOutcome outcome{next.attempt, internal("not submitted")};
    try {
      outcome = submit(next);
    } catch (const std::exception& fault) {
      outcome.job = internal(std::string("submitting to Slurm: ") + fault.what());
      outcome.change = hooks_.note_change();
    }
    lock.lock();
    const auto job = outcome.job;
    done_.push_back(std::move(outcome));
    if (!job && job.error().kind == Kind::unavailable)
      for (const Submission& behind : std::exchange(waiting_, {}))
        done_.push_back({behind.attempt, job.error()});
  }
}

SubmissionOutcome Submissions::submit(const Submission& submission) {
  if (auto may = hooks_.check(); !may) return {submission.attempt, std::move(may).error()};
  auto job = slurm_->submit(submission.request);
  if (job)
    log(Level::info, "launch", "submitted to Slurm",
        {{"attempt", submission.attempt.text()}, {"slurm_job", std::to_string(*job)}});
  return {submission.attempt, std::move(job), hooks_.note_change()};
}

}  // namespace trainyard::launch
