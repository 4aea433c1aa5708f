// Control is the core of the control plane: it admits commands, stores them in the ledger, and
// makes the running hosts match what the ledger wants.
//
// Two loops, each a step that a thread repeats (apps) or the simulator calls (one thread, one
// seed):
//
//   commit_step     takes all pending commands, applies each to the state in memory (pure:
//                   state.hpp), writes all of them in one ledger transaction, and answers. It is
//                   the only writer of the ledger.
//   reconcile_step  makes a snapshot, calls decide() (pure: reconcile.hpp, schedule), and carries
//                   the decision out: commands to itself, calls to the launcher, orders to agents.
//                   It keeps no list of effects: it compares the ledger with the agents that the
//                   launcher lists.
//
// Threads: commands, reports and reads from anywhere; commit_step() and reconcile_step() each from
// one thread. Answers are called on the thread of commit_step and must not block.
// Errors:  passed to answers: conflict (name in use; state does not allow it), not_found, invalid,
//          exhausted (backlog full, disk full), unavailable (stopping).
// Lifetime: everything passed to the constructor must outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/disk_reserve.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "batch/catalog.hpp"
#include "control/control_time.hpp"
#include "control/replay_report.hpp"
#include "domain/array.hpp"
#include "domain/file_system.hpp"
#include "domain/image.hpp"
#include "domain/image_policy.hpp"
#include "domain/instance_quota.hpp"
#include "domain/job.hpp"
#include "domain/limits.hpp"
#include "domain/record.hpp"
#include "domain/usage.hpp"
#include "launch/launcher.hpp"
#include "ledger/ledger.hpp"
#include "observe/logs.hpp"
#include "observe/metrics.hpp"
#include "reconcile/create_job.hpp"
#include "reconcile/explain.hpp"
#include "reconcile/queue_head.hpp"
#include "reconcile/spot.hpp"
#include "schedule/growth.hpp"

namespace trainyard::wire {
struct StateFact;
}

namespace trainyard::control {

struct Settings {
  std::string account;
  // By name in TrainingImage: the image; other names are oci: and containers-storage: references.
  std::map<std::string, domain::Image> images;
  domain::ImagePolicy image_policy;        // selects which other images jobs may run
  domain::EgressSettings egress_settings;  // the egress of jobs
  domain::FileSystems file_systems;
  // Returns the file systems that requests have created in a region. Called by reconcile_step.
  std::function<domain::FileSystems(const std::string& region)> created_file_systems =
      [](const std::string&) { return domain::FileSystems(); };
  // Directories that Batch jobs may mount, by the path in their requests.
  domain::FileSystems volumes;
  domain::PosixUsers posix_users;  // the users with which jobs access file systems and volumes
  // True: containers that cannot have a user namespace run without one.
  bool best_effort_isolation = false;
  bool copy_channels = false;  // true: channels in File mode are copied instead of mounted
  // Returns the quotas on instances that training jobs use at once. Called in each iteration, so
  // they may change.
  std::function<std::vector<domain::InstanceQuota>()> quotas = [] {
    return std::vector<domain::InstanceQuota>();
  };
  bool scale_gangs = true;  // dev mode: the config has no machines, so gangs scale to the machine
  // Smaller if the launcher's network pool has fewer addresses. Gangs with encryption need twice as
  // many.
  int64_t gang_hosts_max = domain::kGangHostsMax;
  int64_t encrypted_gang_hosts_max = domain::kGangHostsMax;
  size_t backlog_commands_max = 10'000;  // pending commands; more fail with `exhausted`
  // In one commit, so that later commands wait some milliseconds rather than seconds.
  size_t group_commands_max = 1'000;
  Duration reconcile_interval = 500ms;  // when no command arrives
  Duration launch_timeout = 5min;       // for starting a gang, with retries
  Duration stop_grace = 120s;           // between SIGTERM and SIGKILL
  // A host without output and work for this time is reported as hanging; 0: never.
  Duration stalled_after = 30min;
  Duration stop_upload_timeout = 60min;  // for uploads after a stop: a large model, a slow link
  reconcile::Spot spot;                  // interrupts spot jobs, in addition to requests
  Duration spot_notice = 120s;           // between SIGTERM and SIGKILL of interrupted spot jobs
  schedule::GrowthPolicy growth;         // for machines that the launcher adds on demand
  // For an agent whose job has ended, to send its last log lines and exit.
  Duration leave_timeout = 30s;
  // Why traffic between hosts cannot be encrypted here; "": it can.
  std::string no_encryption = {};
  std::string api_address;       // of this server, for orders: "127.0.0.1:4566"
  std::string wire_address;      // "unix:/.../agents.sock"
  std::string objects_endpoint;  // "http://127.0.0.1:4566", or of an external object store
  // Issues a certificate with this common name to the agents of an attempt (wire/messages.hpp);
  // nullptr: agents connect without TLS.
  std::function<Result<wire::AgentIdentity>(const std::string& name)> issue_certificate;
  std::string authority;  // as wire::Order::authority
  ClockSettings clock;
  // Called before a job is created; if it fails, create_job fails (base/disk_reserve.hpp).
  CheckDiskSpace check_disk_space = no_reserve();
  // Called by commit_step when the ledger accepts no more commits (ledger.hpp, failure()). The
  // process must then end and be restarted. Must not block.
  std::function<void(const std::string& why)> ledger_failed = [](const std::string&) {};
};

using reconcile::CreateJob;

// The options of an interruption.
struct Interruption {
  // The interrupted host; its peers end with it. nullopt: all hosts.
  std::optional<domain::HostIndex> host;
  std::optional<Duration> notice;  // nullopt: the configured one
  std::string reason;              // "": "requested by a user"
};

using Answer = std::function<void(Result<domain::Job>)>;
// The result of a fact.
struct FactApplied {
  uint64_t facts_applied = 0;  // the number of this host's durable facts
  bool final = false;          // true: the host has ended, and its agent may exit
};
using FactAnswer = std::function<void(Result<FactApplied>)>;
// The new state of a queue, environment or definition.
struct ResourceRequest {
  batch::ResourceChange how = batch::ResourceChange::create;
  batch::Resource resource;
};
using ResourceAnswer = std::function<void(Result<batch::Resource>)>;
// Changes to the API layer's records (domain/record.hpp).
struct RecordsRequest {
  std::vector<domain::RecordWrite> writes;
  uint64_t expected = 0;  // Records::version that the caller has read
};
using RecordsAnswer = std::function<void(Result<std::shared_ptr<const domain::Records>>)>;
using TagAnswer = std::function<void(Result<std::vector<domain::Tag>>)>;

// Receives notifications. Both functions are called on the loops' threads and must not block.
struct Watcher {
  // Called after a commit that changed the job.
  std::function<void(const std::shared_ptr<const domain::Job>& job)> changed;
  // Called at the end of each reconcile_step, for tasks that depend on time.
  std::function<void()> reconciled;
};

class Control {
 public:
  // Answers pending commands with `unavailable`. Requires: the loops have stopped.
  virtual ~Control() = default;

  // -- commands: answered once durable
  virtual void create_job(CreateJob job, Answer answer) = 0;
  virtual void stop_job(domain::JobKey key, Answer answer) = 0;
  // Stops a job of any kind without a grace period, even if it is already stopping. A Batch job
  // is terminated, with `reason`.
  virtual void kill_job(domain::JobKey key, std::string reason, Answer answer) = 0;
  // Ends the job's attempt. The next one starts from the saved checkpoints, when there is capacity.
  virtual void interrupt_job(domain::JobKey key, Interruption interruption, Answer answer) = 0;
  // Sets how long its hosts are kept after its end. Errors: conflict, if it has no warm pool, or no
  // longer has.
  virtual void keep_alive(domain::JobKey key, int64_t seconds, Answer answer) = 0;
  // Cancels a Batch job; see CancelJob. Does nothing if the job has ended.
  virtual void cancel_job(domain::JobKey key, domain::Cancellation how, std::string reason,
                          Answer answer) = 0;
  virtual void change_resource(ResourceRequest requested, ResourceAnswer answer) = 0;
  // Answers with all records after the change. Errors: conflict, if another request has changed
  // records since they were read; exhausted; invalid.
  virtual void change_records(RecordsRequest requested, RecordsAnswer answer) = 0;
  // Sets the priority of a job within its share. Errors: conflict, if it has ended.
  virtual void prioritise_job(domain::JobKey key, int64_t priority, Answer answer) = 0;
  virtual void set_tags(std::string arn, std::vector<domain::Tag> add,
                        std::vector<std::string> remove_keys, TagAnswer answer) = 0;

  // -- reads: from an immutable view or from tables, without waiting for the writer
  // Finds a job, or a child that its array has not created yet. The pending reason names other jobs
  // only if `may_see` returns true; it is called on the caller's thread, without a lock.
  virtual Result<std::shared_ptr<const domain::Job>> find(const domain::JobKey& key,
                                                          const reconcile::MaySeeJob& may_see) = 0;
  // Finds a job for callers that do not show its reason, which then names no other job.
  Result<std::shared_ptr<const domain::Job>> find(const domain::JobKey& key) {
    return find(key, reconcile::see_no_job);
  }
  virtual Result<ledger::JobPage> list(const ledger::JobQuery& query) = 0;
  virtual Result<std::vector<domain::Tag>> tags(const std::string& arn) = 0;
  // Returns the jobs in memory, by number: unfinished jobs, and those that still hold hosts.
  virtual std::vector<std::shared_ptr<const domain::Job>> live_jobs() = 0;
  // Returns the first jobs of each queue, as of the last iteration of reconcile; never nullptr.
  virtual std::shared_ptr<const reconcile::QueueHeads> queue_heads() = 0;
  // Explains what would let a waiting job start, from the snapshot of the last iteration of
  // reconcile. Computes on the caller's thread, for a second at most, one caller at a time; the
  // loops do not wait for it. Errors: not_found; conflict, if the job does not wait; unavailable,
  // if it has not been planned yet; exhausted, if too many explanations are waiting.
  virtual Result<reconcile::Explanation> explain(const domain::JobKey& key,
                                                 const reconcile::ExplainRights& rights) = 0;
  // Explains when a job would start if it were created now, after all checks of create_job().
  // Creates and reserves nothing. Takes turns with explain(). `with_changes`: also explains what
  // would let it start sooner. Requires: the job has no queue. Errors: those of create_job() and
  // explain().
  virtual Result<reconcile::Explanation> preview_job(CreateJob job,
                                                     const reconcile::ExplainRights& rights,
                                                     bool with_changes) = 0;
  // Replays the jobs of a past period (replayer.hpp): each call works on it for about a second on
  // the caller's thread, until the report is done. One replay is computed at a time. Errors:
  // invalid; not_found, if it was dropped; exhausted; unavailable.
  virtual Result<ReplayReport> start_replay(const ReplayCaller& caller, ReplayRequest request) = 0;
  virtual Result<ReplayReport> resume_replay(const ReplayCaller& caller, const std::string& id) = 0;
  // Returns control's time (control_time.hpp).
  virtual Instant now() = 0;
  // Returns the wall clock minus control's time.
  virtual Duration clock_offset() = 0;
  // Counts an array's children by status, including those that were not created yet.
  virtual Result<domain::ChildCounts> count_children(const domain::Job& array) = 0;
  // Returns children in the order of their index, from query.first on; children that are not
  // created yet appear as they will be.
  virtual Result<std::vector<domain::Job>> children(const domain::Job& array,
                                                    const ledger::ChildQuery& query) = 0;
  // Resolves the name of an image. Errors: invalid, with the accepted forms.
  virtual Result<domain::Image> find_image(const std::string& name) = 0;
  // Returns all of Batch's resources except definitions; never nullptr.
  virtual std::shared_ptr<const batch::Catalog> batch_catalog() = 0;
  // Returns the records of the API layer; never nullptr.
  virtual std::shared_ptr<const domain::Records> records() = 0;
  virtual Result<std::vector<batch::JobDefinition>> definitions(
      const ledger::DefinitionQuery& query) = 0;

  // -- the loops
  virtual void commit_step() = 0;
  // Returns the time for reading and deciding, which grows with the number of jobs, and for failed
  // actions, which are retried. The time of successful starts and removals is not included.
  virtual std::chrono::nanoseconds reconcile_step() = 0;
};

// ControlPlane adds the calls that only other modules of the server may make: reports of agents,
// and the setup of loops and watchers.
class ControlPlane : public Control {
 public:
  using Control::find;
  virtual Result<std::shared_ptr<const domain::Job>> find(domain::JobNumber number) = 0;
  // Applies a fact of a host's agent; the gateway calls it.
  virtual void report(domain::AttemptId attempt, domain::HostIndex host, wire::StateFact fact,
                      FactAnswer answer) = 0;
  // Sets the functions that are called, from any thread, when a step has work; they must not block
  // or call back. May be set at any time; once this returns, the previous ones are no longer
  // called.
  virtual void on_due(std::function<void()> commit, std::function<void()> reconcile) = 0;
  // Requires: called before the loops start. Lifetime: everything that the watcher refers to
  // outlives the loops.
  virtual void watch(Watcher watcher) = 0;
};

// Loads unfinished jobs from the ledger. Errors: the ledger's.
Result<std::unique_ptr<ControlPlane>> make_control(Settings settings, ledger::Ledger& ledger,
                                                   launch::Launcher& launcher, observe::Logs& logs,
                                                   Clock& clock, Random& random);

// Returns the ARN of a training job.
std::string job_arn(const std::string& account, const domain::JobKey& key);
// Return the ARN of any job.
std::string job_arn(const std::string& account, const domain::JobKey& key,
                    domain::Contract contract);
std::string job_arn(const domain::Job& job);

}  // namespace trainyard::control
