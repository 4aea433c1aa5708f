// Decides the next actions that bring the running hosts in line with the ledger. It reads a
// snapshot of jobs, agents and machines, and returns commands for the ledger, attempts to start and
// attempts to remove. It has no state: the same arguments give the same decision.
//
// A job that cannot be planned fails alone. Numbers beyond their limits (a ledger of an earlier
// version may have them) and exceptions that its data causes become a `Fail` command with the
// reason; all other jobs are planned without it.
//
// Threads: pure. Errors: none.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "batch/catalog.hpp"
#include "domain/instance_quota.hpp"
#include "domain/usage.hpp"
#include "launch/launcher.hpp"
#include "reconcile/growth_view.hpp"
#include "reconcile/queue_head.hpp"
#include "reconcile/schedule_view.hpp"
#include "reconcile/spot.hpp"
#include "reconcile/state.hpp"
#include "schedule/plan.hpp"

namespace trainyard::reconcile {

struct Snapshot {
  // By number: unfinished jobs, and finished jobs that keep hosts or of which the launcher still
  // lists agents.
  std::vector<std::shared_ptr<const domain::Job>> jobs;
  std::vector<launch::Agent> agents;
  std::vector<launch::Machine> machines;
  std::shared_ptr<const batch::Catalog> catalog;  // nullptr: without queues and environments
  // The final states of jobs that others depend on and that are not among `jobs`.
  std::map<domain::JobNumber, domain::JobState> ended;
  // For each of arrays_without_open_children(jobs): true if a child has failed.
  std::map<domain::JobNumber, bool> child_failed;
  QueueHeads queue_heads;  // of the last iteration
  // Attempts that the launcher could not start at its last try, with the errors.
  std::map<domain::AttemptId, Error> launch_failures;
  // Queues whose hosts may run one job after another (host_reuse.hpp).
  std::set<domain::JobKey> reuse_queues = {};
  domain::Usages usages = {};  // of the shares of each queue
  std::vector<domain::InstanceQuota> quotas = {};
  std::vector<launch::MachineKind> kinds = {};  // the kinds that the launcher can add
  IdleSince idle_since = {};                    // from the last iteration
  Duration clock_offset = {};                   // the wall clock minus control's time
  Instant server_began = Instant::max();  // in control's time: attempts up to it may be a former's
};

// Limits the waiting children per array, which are in memory and read by each iteration. This
// number is enough to fill the capacity that becomes free until the next iteration.
inline constexpr uint32_t kChildrenWaitingMax = 256;
// Limits the children with dependencies, which may end in any order; so there are more of them.
inline constexpr uint32_t kChildrenAwaitingMax = 1'024;

// The time limits of operations.
struct Timeout {
  Duration launch = 5min;        // for starting a gang, with retries
  Duration stop_grace = 120s;    // between SIGTERM and SIGKILL
  Duration stop_upload = 60min;  // for uploads after a stop: a large model over a slow link
  // For an agent whose job has ended, to send its last log lines and exit.
  Duration leave = 30s;
  // Between attempts that did not reach training. It is doubled after each, so that a failing job
  // does not keep the server busy.
  Duration retry_pause = 1s;
  Duration retry_pause_max = 60s;
  Duration spot_notice = 120s;  // for interrupted spot jobs, before SIGKILL
  schedule::GrowthPolicy growth = {};
};

struct Decision {
  std::vector<Command> commands;  // control adds the token of StartAttempt
  std::vector<schedule::Wait> waits;
  std::vector<domain::AttemptId> ensure;  // attempts to start, unless they run
  // By attempt to start: the ended attempt whose idle host it may reuse.
  std::map<domain::AttemptId, domain::AttemptId> after = {};
  std::vector<domain::AttemptId> remove;
  std::map<std::string, uint32_t> grow = {};  // kind -> the wanted number of machines
  std::vector<std::string> shrink = {};       // machines to release
  IdleSince idle_since = {};
};

// Returns the arrays that create no more children and have no unfinished child among `jobs`.
std::vector<domain::JobNumber> arrays_without_open_children(
    const std::vector<std::shared_ptr<const domain::Job>>& jobs);

using Planner =
    std::function<schedule::Plan(const schedule::Snapshot&, const schedule::Policy&, Instant)>;

// `now` is control's time (control_time.hpp). Only tests pass another `planner`.
Decision decide(const Snapshot& snapshot, const schedule::Policy& policy, const Timeout& timeout,
                const Spot& spot, Instant now, const Planner& planner = schedule::plan);

// The scheduler's snapshot as decide() plans it, and variants of one of its waiting jobs.
struct PlannedCluster {
  schedule::Snapshot cluster;
  std::vector<schedule::Variant> variants;
  // Why the job is not among the snapshot's waiting jobs; "": it is.
  std::string not_planned;
};
// Requires: the job waits in the snapshot.
PlannedCluster planned_cluster(const Snapshot& snapshot, const schedule::Policy& policy,
                               const Timeout& timeout, const Spot& spot, Instant now,
                               domain::JobNumber job, const MayUseQueue& may_use);

}  // namespace trainyard::reconcile
