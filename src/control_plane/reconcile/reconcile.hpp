// What to do next so that what runs is what the ledger wants. Pure: a snapshot of jobs, of the launcher's
// agents and machines, and the instant, to commands (for the ledger), attempts to start or find, and attempts
// to remove. It keeps nothing: asked again, it answers again.
//
// A job that cannot be planned fails alone: numbers beyond their limits (a ledger of an earlier version may hold them)
// and exceptions while its data is looked at become its `Fail`, with the reason, and all others are planned without it.
//
// Threads: pure. Errors: none.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "domain/service_quota.hpp"
#include "domain/usage.hpp"
#include "launch/launcher.hpp"
#include "reconcile/growth_view.hpp"
#include "reconcile/queue_front.hpp"
#include "reconcile/spot.hpp"
#include "reconcile/state.hpp"
#include "schedule/plan.hpp"

namespace trainyard::reconcile {

struct Snapshot {
  // By number: jobs that are not finished, and finished ones that keep hosts or of which the launcher still shows
  // something.
  std::vector<std::shared_ptr<const domain::Job>> jobs;
  std::vector<launch::Agent> agents;
  std::vector<launch::Machine> machines;
  std::shared_ptr<const domain::BatchCatalog> yard;  // nullptr: without queues and environments
  // Of jobs that others await and that are not among `jobs`: how they ended.
  std::map<domain::JobNumber, domain::JobState> ended;
  // Of those_to_count(jobs): whether one of their children has failed.
  std::map<domain::JobNumber, bool> child_failed;
  Fronts fronts;  // as the turn before saw them
  // Attempts that the launcher could not start when last asked, and why.
  std::map<domain::AttemptId, Error> launch_failures;
  // Whose hosts may serve one job after another (reuse.hpp).
  std::set<domain::JobKey> reuse_queues = {};
  domain::Usages usages = {};  // of those who share lines
  std::vector<domain::InstanceQuota> quotas = {};
  std::vector<launch::MachineKind> kinds = {};  // that the launcher can make more of
  IdleSince idle_since = {};                    // as the turn before saw it
  Duration clock_offset = {};                   // what the wall clock is ahead of control's time
};

// Of one array. Children that wait are in memory, and each turn looks at them: so many are enough for the next turn to
// fill what ended meanwhile.
inline constexpr uint32_t kChildrenWaitingMax = 256;
// Those that await others: more of them, since who is awaited may end in any order.
inline constexpr uint32_t kChildrenAwaitingMax = 1'024;

// How long things may take before control gives up on them.
struct Timeout {
  Duration launch = 5min;        // to start a gang that the launcher could not start just now
  Duration stop_grace = 120s;    // between SIGTERM and SIGKILL
  Duration stop_upload = 60min;  // to upload after a stop: a large model over a slow line
  Duration leave = 30s;  // for an agent whose job is over to ship its last log lines and end by itself
  // Between attempts, when none of the last ones came as far as training: doubled with each, so that what cannot be
  // does not keep everybody busy.
  Duration retry_pause = 1s;
  Duration retry_pause_max = 60s;
  Duration spot_notice = 120s;  // for spot jobs that are taken away
  schedule::GrowthPolicy growth = {};
};

struct Decision {
  std::vector<Command> commands;  // Place has no token yet: who carries it out draws one
  std::vector<schedule::Wait> waits;
  std::vector<domain::AttemptId> ensure;
  // Of those: the attempt that is over and whose host it may have, if that still waits for one.
  std::map<domain::AttemptId, domain::AttemptId> after = {};
  std::vector<domain::AttemptId> remove;
  std::map<std::string, uint32_t> grow = {};  // kind -> how many machines there shall be
  std::vector<std::string> shrink = {};       // machines
  IdleSince idle_since = {};
};

// Arrays that make no more children, and have none among `jobs` that is not over.
std::vector<domain::JobNumber> those_to_count(const std::vector<std::shared_ptr<const domain::Job>>& jobs);

using Planner = std::function<schedule::Plan(const schedule::Snapshot&, const schedule::Policy&, Instant)>;

// `now` is control's time (control_time.hpp). `planner`: another one for tests alone.
Decision decide(const Snapshot& snapshot, const schedule::Policy& policy, const Timeout& timeout,
                const Spot& spot, Instant now, const Planner& planner = schedule::plan);

}  // namespace trainyard::reconcile
