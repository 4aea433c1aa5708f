// Submissions submits jobs to Slurm one after another on its own thread: each takes some hundredths
// of a second, during which the launcher handles other attempts. A submission that has not begun
// can be cancelled, if a running job takes the attempt instead.
//
// If Slurm does not answer a submission, the ones behind it fail, too, without being sent: each
// would wait as long.
//
// Threads: created, used and destroyed by one thread. Errors: those of a submission are in its
// outcome.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "domain/placement.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

struct Submission {
  domain::AttemptId attempt;
  SlurmJobRequest request;
};

struct SubmissionOutcome {
  domain::AttemptId attempt;
  Result<uint64_t> job;
  // The number of the change (SlurmView::note_change()) that it made, or may have made; 0: it was
  // not sent.
  uint64_t change = 0;
};

// Returns true if Slurm has no job after this error of a submission.
bool is_rejection(const Error& error);

struct SubmissionHooks {
  // Called before each submission; if it fails, the submission fails.
  std::function<Result<void>()> check;
  std::function<uint64_t()> note_change;  // called after each submission
};

class Submissions {
 public:
  // Without a thread, add() submits and waits for the answer. The hooks are called on the
  // submitting thread. Lifetime: everything that they refer to outlives it.
  Submissions(std::unique_ptr<Slurm> slurm, SubmissionHooks hooks, bool own_thread);
  // Interrupts the submission that is in progress, and drops the others.
  ~Submissions();
  Submissions(const Submissions&) = delete;

  void add(Submission submission);
  // Returns the outcomes since the last call.
  std::vector<SubmissionOutcome> take();
  // Returns false if the submission has begun.
  bool cancel(const domain::AttemptId& attempt);

 private:
  void run();
  SubmissionOutcome submit(const Submission& submission);

  const std::unique_ptr<Slurm> slurm_;
  const SubmissionHooks hooks_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Submission> waiting_ GUARDED_BY(mutex_);
  std::vector<SubmissionOutcome> done_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // none: add() submits
};

}  // namespace trainyard::launch
