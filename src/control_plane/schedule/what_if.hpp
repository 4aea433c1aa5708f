// Explains what would let a waiting job start: plans again on the same snapshot with one thing
// changed, for each of some changes, and ranks the changes by how soon the job would start.
//
// Changes of the cluster are derived from the snapshot (a running job ends, a waiting job is
// cancelled, machines are added, a limit or a quota share is raised, the job's priority is raised).
// Changes of the job's request need numbers that the scheduler does not have (what a smaller gang
// needs of an environment), so the caller passes them as variants of the waiting job.
//
// A start "now" is certain at this instant: plan() of the changed snapshot has it. A later start is
// projected (projection.hpp): each job takes its longest time, and no other job comes.
//
// Threads: pure. Errors: none.
// Cost: at most kWhatIfPlansMax plans, which read at most kWhatIfEntriesMax jobs and machines.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

// In the order in which equally good answers are shown: what the job's own user can do comes first.
enum class ChangeKind {
  raise_priority,
  shrink_gang,
  change_type,
  change_queue,
  raise_limit,
  raise_quota_share,
  cancel_job,
  end_job,
  add_machines,
};

struct Change {
  ChangeKind kind = ChangeKind::raise_priority;
  domain::JobNumber job = 0;  // that ends, or is cancelled
  // as users see it: a kind of machine ("" if none is known), an instance type, a queue, a limit, a
  // quota share
  std::string name = {};
  std::string unit = {};  // the capacity unit of the quota share
  size_t limit = 0;       // index in Snapshot::limits
  // hosts of the gang, machines, the amount of a limit or quota share, or the priority
  double from = 0, to = 0;
  domain::Share share = {};  // of each added machine
};

inline constexpr size_t kWhatIfPlansMax = 400;
inline constexpr size_t kWhatIfEntriesMax = 1'000'000;  // about a second

// The waiting job with another request.
struct Variant {
  Change change;
  WaitingJob waiting;
};

struct WhatIfQuestion {
  domain::JobNumber job = 0;
  std::vector<Variant> variants = {};
  // Kinds of machines that can be added. Empty: machines like those of the snapshot.
  std::vector<Machine> machine_kinds = {};
  // False: answers must not tell that this job exists. Called for at most kJobsCheckedMax jobs.
  std::function<bool(domain::JobNumber)> may_name = [](domain::JobNumber) { return true; };
  Duration preemption_takes = {};  // until the hosts of a preempted job are free, at the latest
  bool with_changes = true;        // false: only the reason and the start are wanted
  // jobs and machines of all planned snapshots together; tests set less
  size_t entries_max = kWhatIfEntriesMax;
};

struct WhatIfAnswer {
  Change change;
  Instant starts;  // the instant of the snapshot: now
};

struct WhatIf {
  std::string reason = {};  // the pending reason; "": the job starts now
  // With nothing changed. Nothing: unknown.
  std::optional<Instant> starts = {};
  // With which the job starts sooner; the soonest first.
  std::vector<WhatIfAnswer> answers = {};
  bool whole = true;  // false: the cluster is too large for all changes to be tried
};

inline constexpr size_t kJobsTriedMax = 16;         // running jobs that end, and as many that wait
inline constexpr size_t kJobsCheckedMax = 256;      // whose rights are checked, likewise
inline constexpr size_t kAnswersOfKindMax = 3;      // more would hide the other kinds
inline constexpr size_t kMachinesAddedMax = 1'000;  // in one change
inline constexpr double kPriorityMax = 9'999;       // AWS's limit for a schedulingPriority

// Requires: as plan(); the job waits in the snapshot.
WhatIf what_if(const Snapshot& snapshot, const Policy& policy, Instant now,
               const WhatIfQuestion& question);

// Returns the snapshot with the change. Requires: it is the change of an answer to that question.
Snapshot with_change(const Snapshot& snapshot, const WhatIfQuestion& question,
                     const Change& change);

}  // namespace trainyard::schedule
