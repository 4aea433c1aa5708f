// Decides the next actions that bring the running hosts in line with the ledger. It maps a snapshot
// of jobs, of the launcher's agents and machines, and an instant, to commands (for the ledger),
// attempts to start or find, and attempts to remove. It keeps no state: the same arguments give the
// same decision.
//
// A job that cannot be planned fails alone: numbers beyond their limits (a ledger of an earlier
// version may hold them) and exceptions caused by its data become its `Fail`, with the reason, and
// all others are planned without it.
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
  // By number: jobs that are not finished, and finished ones that keep hosts or of which the
  // launcher still lists agents.
  std::vector<std::shared_ptr<const domain::Job>> jobs;
  std::vector<launch::Agent> agents;
  std::vector<launch::Machine> machines;
  std::shared_ptr<const batch::Catalog> catalog;  // nullptr: without queues and environments
  // How jobs ended that others depend on and that are not among `jobs`.
  std::map<domain::JobNumber, domain::JobState> ended;
  // For those_to_count(jobs): true if one of their children has failed.
  std::map<domain::JobNumber, bool> child_failed;
  QueueHeads queue_heads;  // of the last iteration
  // Attempts that the launcher could not start at its last try, and why.
  std::map<domain::AttemptId, Error> launch_failures;
  // Queues whose hosts may serve one job after another (host_reuse.hpp).
  std::set<domain::JobKey> reuse_queues = {};
  domain::Usages usages = {};  // of the shares of each queue
  std::vector<domain::InstanceQuota> quotas = {};
  std::vector<launch::MachineKind> kinds = {};  // that the launcher can add
  IdleSince idle_since = {};                    // of the last iteration
  Duration clock_offset = {};                   // the wall clock minus control's time
  Instant server_began = Instant::max();  // in control's time: attempts up to it may be a former's
};

// Per array. WaitingJob children are in memory and each iteration reads them: this many suffice for
// the next iteration to fill the capacity that became free meanwhile.
inline constexpr uint32_t kChildrenWaitingMax = 256;
// Children that depend on others: more of them, since their dependencies may end in any order.
inline constexpr uint32_t kChildrenAwaitingMax = 1'024;

// How long operations may take before control gives up on them.
struct Timeout {
  Duration launch = 5min;        // to start a gang that the launcher could not start just now
  Duration stop_grace = 120s;    // between SIGTERM and SIGKILL
  Duration stop_upload = 60min;  // to upload after a stop: a large model over a slow link
  // for an agent whose job is over to send its last log lines and end by itself
  Duration leave = 30s;
  // Between attempts, when none of the last ones reached training: doubled with each, so that a
  // hopeless job does not keep the server busy.
  Duration retry_pause = 1s;
  Duration retry_pause_max = 60s;
  Duration spot_notice = 120s;  // for spot jobs that are interrupted
  schedule::GrowthPolicy growth = {};
};

struct Decision {
  std::vector<Command> commands;  // StartAttempt has no token yet: control draws one
  std::vector<schedule::Wait> waits;
  std::vector<domain::AttemptId> ensure;
  // For each: the ended attempt whose host it may have, if that still waits for one.
  std::map<domain::AttemptId, domain::AttemptId> after = {};
  std::vector<domain::AttemptId> remove;
  std::map<std::string, uint32_t> grow = {};  // kind -> how many machines there should be
  std::vector<std::string> shrink = {};       // machines
  IdleSince idle_since = {};
};

// Arrays that create no more children, and whose children among `jobs` are all over.
std::vector<domain::JobNumber> those_to_count(
    const std::vector<std::shared_ptr<const domain::Job>>& jobs);

using Planner =
    std::function<schedule::Plan(const schedule::Snapshot&, const schedule::Policy&, Instant)>;

// `now` is control's time (control_time.hpp). Only tests pass another `planner`.
Decision decide(const Snapshot& snapshot, const schedule::Policy& policy, const Timeout& timeout,
                const Spot& spot, Instant now, const Planner& planner = schedule::plan);

// The scheduler's snapshot as decide() plans it, and one of its waiting jobs with other requests.
struct PlannedCluster {
  schedule::Snapshot cluster;
  std::vector<schedule::Variant> variants;
  // the reason why the job is not among the waiting jobs, whatever becomes free; "": it is
  std::string not_planned;
};
// Requires: the job waits in the snapshot.
PlannedCluster planned_cluster(const Snapshot& snapshot, const schedule::Policy& policy,
                               const Timeout& timeout, const Spot& spot, Instant now,
                               domain::JobNumber job, const MayUseQueue& may_use);

}  // namespace trainyard::reconcile
