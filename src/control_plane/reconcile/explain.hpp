// Explains what would let a waiting job start: calls schedule::what_if with the snapshot that
// decide() plans, and hides from the answers the jobs that the caller may not see.
//
// A hidden job is called "another job" in the pending reason, and no answer is about it. It still
// counts: the machines that it holds, and when it ends.
//
// A preview does the same for a job that does not exist: it is added to the snapshot, as if it had
// just been created. Nothing is stored, and nothing is reserved.
//
// Threads: pure. Errors: conflict (the job does not wait), unavailable (it is not planned yet).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reconcile/create_job.hpp"
#include "reconcile/guarded_text.hpp"
#include "reconcile/reconcile.hpp"
#include "schedule/what_if.hpp"

namespace trainyard::reconcile {

// The rights of the caller. Both are called on the thread of explain().
struct ExplainRights {
  MaySeeJob may_see;
  MayUseQueue may_use;
};

struct ExplanationAnswer {
  schedule::Change change;  // its name is as users see it
  domain::JobKey job = {};  // that ends, or is cancelled
  std::string job_title = {};
  bool now = false;
  Instant starts;  // wall time
};

struct Explanation {
  domain::JobKey job;  // of an array: its first waiting child
  std::string reason;  // the pending reason; "": the job starts now
  // Wall time, with nothing changed. Nothing: unknown.
  std::optional<Instant> starts = {};
  std::vector<ExplanationAnswer> answers = {};
  bool whole = true;  // false: the cluster is too large for all changes to be tried
};

// `now` is control's time.
Result<Explanation> explain(const Snapshot& snapshot, const schedule::Policy& policy,
                            const Timeout& timeout, const Spot& spot, Instant now,
                            domain::JobNumber job, const ExplainRights& rights,
                            bool with_changes = true);

// Without changes (the answers are empty) it costs a few plans instead of hundreds. Requires: the
// job waits for no other job. Errors: those of the command, and unavailable.
Result<Explanation> preview(const Snapshot& snapshot, const schedule::Policy& policy,
                            const Timeout& timeout, const Spot& spot, Instant now, CreateJob create,
                            const ExplainRights& rights, bool with_changes);

}  // namespace trainyard::reconcile
