// Explains what would let a waiting job start. It tries changes one at a time, plans the changed
// snapshot, and ranks the changes by how soon the job would start.
//
// Changes of the cluster are derived from the snapshot (a running job ends, a waiting job is
// cancelled, machines are added, a limit or a quota share is raised, the job's priority is raised).
// Changes of the job's request need numbers that the scheduler does not have (the vCPU that a
// smaller gang needs), so the caller passes them as variants of the waiting job.
//
// A start "now" is certain at this instant: plan() of the changed snapshot has it. A later start is
// projected (projection.hpp): each job takes its longest time, and no other job arrives.
//
// Threads: pure. Errors: none.
// Cost: at most kWhatIfPlansMax plans, which read at most kWhatIfEntriesMax jobs and machines.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_table.hpp"
#include "schedule/plan.hpp"

namespace trainyard::schedule {

// The kinds of changes, in the order in which equally good answers are shown: first those that the
// job's own user can make.
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
inline constexpr EnumTable<ChangeKind> kChangeKinds{
    "kind of change",
    {{ChangeKind::raise_priority, "RaisePriority"},
     {ChangeKind::shrink_gang, "ShrinkGang"},
     {ChangeKind::change_type, "ChangeType"},
     {ChangeKind::change_queue, "ChangeQueue"},
     {ChangeKind::raise_limit, "RaiseLimit"},
     {ChangeKind::raise_quota_share, "RaiseQuotaShare"},
     {ChangeKind::cancel_job, "StopWaitingJob"},
     {ChangeKind::end_job, "StopRunningJob"},
     {ChangeKind::add_machines, "AddMachines"}}};

struct Change {
  ChangeKind kind = ChangeKind::raise_priority;
  domain::JobNumber job = 0;  // the job that ends, or is cancelled
  // As users see it: a kind of machine ("" if none is known), an instance type, a queue, a limit,
  // or a quota share.
  std::string name = {};
  std::string unit = {};  // the capacity unit of the quota share
  size_t limit = 0;       // index in Snapshot::limits
  // Hosts of the gang, machines, the amount of a limit or quota share, or the priority.
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
  // Returns false for a job of which the caller must not learn. Called for at most kJobsCheckedMax
  // jobs.
  std::function<bool(domain::JobNumber)> may_name = [](domain::JobNumber) { return true; };
  Duration preemption_takes = {};  // the longest time until hosts of a preempted job are free
  bool with_changes = true;        // false: the answer has only the reason and the start
  // Jobs and machines of all planned snapshots together; tests set less.
  size_t entries_max = kWhatIfEntriesMax;
};

struct WhatIfAnswer {
  Change change;
  Instant starts;  // the job starts then; the instant of the snapshot: now
};

struct WhatIf {
  std::string reason = {};  // the pending reason; "": the job starts now
  // The start without changes; nullopt: unknown.
  std::optional<Instant> starts = {};
  // The changes with which the job starts sooner; the soonest start first.
  std::vector<WhatIfAnswer> answers = {};
  bool whole = true;  // false: the cluster is too large for all changes to be tried
};

inline constexpr size_t kJobsTriedMax = 16;     // running jobs to end; also waiting jobs to cancel
inline constexpr size_t kJobsCheckedMax = 256;  // jobs of each sort for which may_name is called
inline constexpr size_t kAnswersOfKindMax = 3;  // more would hide the other kinds
inline constexpr size_t kMachinesAddedMax = 1'000;  // in one change
inline constexpr double kPriorityMax = 9'999;       // AWS's limit for a schedulingPriority

// Requires: as plan(); the job waits in the snapshot.
WhatIf what_if(const Snapshot& snapshot, const Policy& policy, Instant now,
               const WhatIfQuestion& question);

// Returns the snapshot with the change. Requires: it is the change of an answer to that question.
Snapshot with_change(const Snapshot& snapshot, const WhatIfQuestion& question,
                     const Change& change);

}  // namespace trainyard::schedule
