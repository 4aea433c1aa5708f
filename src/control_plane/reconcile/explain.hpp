// Explains what would let a waiting job start. It calls schedule::what_if with the snapshot that
// decide() plans, and hides jobs that the caller may not see from the answers.
//
// A hidden job is called "another job" in the pending reason, and no answer proposes to change it.
// Its machines and its end still count.
//
// A preview explains a job that does not exist: the job is added to the snapshot, as if it had just
// been created. Nothing is stored or reserved.
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

// The rights of the caller. explain() calls both functions on its thread.
struct ExplainRights {
  MaySeeJob may_see;
  MayUseQueue may_use;
};

struct ExplanationAnswer {
  schedule::Change change;  // its name is the one that users see
  domain::JobKey job = {};  // the job that ends, or is cancelled
  std::string job_title = {};
  bool now = false;
  Instant starts;  // wall time
};

struct Explanation {
  domain::JobKey job;  // of an array: its first waiting child
  std::string reason;  // the pending reason; "": the job starts now
  // The start without changes, in wall time; nullopt: unknown.
  std::optional<Instant> starts = {};
  std::vector<ExplanationAnswer> answers = {};
  bool whole = true;  // false: the cluster is too large for all changes to be tried
};

// `now` is control's time.
Result<Explanation> explain(const Snapshot& snapshot, const schedule::Policy& policy,
                            const Timeout& timeout, const Spot& spot, Instant now,
                            domain::JobNumber job, const ExplainRights& rights,
                            bool with_changes = true);

// Explains a job that would be created. With `with_changes` false the answers are empty, and it
// costs a few plans instead of hundreds. Requires: the job depends on no other job. Errors: those
// of the command, and unavailable.
Result<Explanation> preview(const Snapshot& snapshot, const schedule::Policy& policy,
                            const Timeout& timeout, const Spot& spot, Instant now, CreateJob create,
                            const ExplainRights& rights, bool with_changes);

}  // namespace trainyard::reconcile
