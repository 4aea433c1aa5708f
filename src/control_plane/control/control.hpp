// The control plane's heart: admits commands, keeps them, and makes what runs match what the ledger wants.
//
// Two loops, each a step that a thread repeats (apps) or the simulator calls (one thread, one seed):
//
//   commit_step     takes every command that waits, applies each to the state in memory (pure: state.hpp),
//   writes all
//                   of them in one ledger transaction, answers. The only writer of the ledger.
//   reconcile_step  snapshot -> decide() (pure: reconcile.hpp, schedule) -> commands to itself, calls to the
//   launcher,
//                   orders to agents. Keeps no list of effects: it compares what the ledger wants with what
//                   the launcher shows.
//
// Threads: commands, reports and reads from anywhere; commit_step() and reconcile_step() each from one
// thread.
//          Answers are called on the thread of commit_step and must not block.
// Errors:  answers carry them: conflict (name taken; illegal move), not_found, invalid, exhausted (backlog
// full, disk
//          full), unavailable (stopping).
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
#include "control/control_time.hpp"
#include "domain/array.hpp"
#include "domain/batch.hpp"
#include "domain/file_system.hpp"
#include "domain/image.hpp"
#include "domain/image_policy.hpp"
#include "domain/job.hpp"
#include "domain/limits.hpp"
#include "domain/record.hpp"
#include "domain/service_quota.hpp"
#include "domain/usage.hpp"
#include "launch/launcher.hpp"
#include "ledger/ledger.hpp"
#include "observe/logs.hpp"
#include "observe/metrics.hpp"
#include "reconcile/queue_front.hpp"
#include "reconcile/spot.hpp"
#include "schedule/growth.hpp"

namespace trainyard::wire {
struct StateFact;
}

namespace trainyard::control {

struct Settings {
  std::string account;
  std::map<std::string, domain::Image>
      images;  // what TrainingImage names stand for, beside oci: and containers-storage:
  domain::ImagePolicy image_policy;  // which of the others jobs may run
  domain::Outward outward;           // how jobs reach the outside
  domain::FileSystems file_systems;
  domain::FileSystems volumes;     // directories that Batch jobs may ask for, by the path that they call them
  domain::PosixUsers posix_users;  // as whom jobs use both
  bool best_effort_isolation = false;  // containers that cannot have a user namespace run without one
  // Of instances that training jobs use at once; asked in each turn, so they may change.
  std::function<std::vector<domain::InstanceQuota>()> quotas = [] {
    return std::vector<domain::InstanceQuota>();
  };
  bool scale_gangs = true;  // dev mode: no machines in the config, so gangs scale to what there is
  int64_t gang_hosts_max = domain::kGangHostsMax;  // less, where the launcher's network pool holds less
  int64_t encrypted_gang_hosts_max =
      domain::kGangHostsMax;             // likewise; their networks have twice the addresses
  size_t backlog_commands_max = 10'000;  // that wait for their commit; more are refused with `exhausted`
  size_t group_commands_max =
      1'000;  // in one commit: what waits behind it waits some milliseconds, not seconds
  Duration reconcile_interval = 500ms;   // when nothing happens
  Duration launch_timeout = 5min;        // to start a gang that the launcher cannot start just now
  Duration stop_grace = 120s;            // between SIGTERM and SIGKILL
  Duration stalled_after = 30min;        // without output and work, a host is said to hang; 0 = never
  Duration stop_upload_timeout = 60min;  // to upload after a stop: a large model over a slow line
  reconcile::Spot spot;                  // what takes spot jobs' machines away, beside people
  Duration spot_notice = 120s;           // then, between SIGTERM and SIGKILL
  schedule::GrowthPolicy growth;         // of machines that the launcher makes on demand
  Duration leave_timeout = 30s;  // for an agent whose job is over to ship its last lines and end by itself
  std::string no_encryption =
      {};                    // why traffic between hosts is not encrypted here, in words; "" when it can be
  std::string api_address;   // of this server, for orders: "127.0.0.1:4566"
  std::string wire_address;  // "unix:/.../agents.sock"
  std::string objects_endpoint;  // "http://127.0.0.1:4566", or the external one
  ClockSettings clock;
  // Asked before a job is created; its error is the answer (base/disk_reserve.hpp).
  CheckRoom check_room = no_reserve();
  // Called by commit_step when the ledger takes no more commits (ledger.hpp, failure): the process must end, and is to
  // be started again. Must not block.
  std::function<void(const std::string& why)> ledger_failed = [](const std::string&) {};
};

// What the face hands over to create a job; control adds number, account, times.
struct NewJob {
  domain::JobKey key;
  domain::JobSpec spec;
  std::vector<domain::Tag> tags;
};

// What somebody who interrupts a job may say.
struct Interruption {
  std::optional<domain::HostIndex> host;  // that is taken away; its peers end with it. Nothing: all
  std::optional<Duration> notice;         // nothing: as the config says
  std::string reason;                     // "" = "somebody asked for it"
};

using Answer = std::function<void(Result<domain::Job>)>;
// What became of a fact: how many of this host's facts are durable, and whether the job needs no more of it.
struct FactApplied {
  uint64_t facts_applied = 0;
  bool final = false;
};
using FactAnswer = std::function<void(Result<FactApplied>)>;
// Of a queue, environment or definition: as it is after the change.
struct ResourceRequest {
  domain::ResourceChange how = domain::ResourceChange::create;
  domain::BatchResource resource;
};
using ResourceAnswer = std::function<void(Result<domain::BatchResource>)>;
// Documents that a front end stores; see domain/record.hpp.
struct RecordsWish {
  std::vector<domain::RecordWrite> writes;
  uint64_t expected = 0;  // Records::version that the caller has read
};
using RecordsAnswer = std::function<void(Result<std::shared_ptr<const domain::Records>>)>;
using TagAnswer = std::function<void(Result<std::vector<domain::Tag>>)>;

// Who must know of what happens. Both are called on the loops' threads and must not block.
struct Watcher {
  // After a commit that changed it.
  std::function<void(const std::shared_ptr<const domain::Job>& job)> changed;
  // At the end of each reconcile_step, for what depends on time.
  std::function<void()> reconciled;
};

class Control {
 public:
  // Answers what is still waiting with `unavailable`. Requires: the loops have stopped.
  virtual ~Control() = default;

  // -- commands: answered once durable
  virtual void create_job(NewJob job, Answer answer) = 0;
  virtual void stop_job(domain::JobKey key, Answer answer) = 0;
  // Its attempt ends, with what it has saved as checkpoints, and the next one follows when there is room.
  virtual void interrupt_job(domain::JobKey key, Interruption interruption, Answer answer) = 0;
  // For how long its hosts are kept after its end. Errors: conflict, when it has no warm pool (any more).
  virtual void keep_alive(domain::JobKey key, int64_t seconds, Answer answer) = 0;
  // Takes a Batch job back; see Withdraw. A job that is over stays as it is.
  virtual void withdraw_job(domain::JobKey key, domain::Withdrawn how, std::string reason, Answer answer) = 0;
  virtual void change_resource(ResourceRequest wish, ResourceAnswer answer) = 0;
  // Answers with all records after the change. Errors: conflict, when others have changed records since they were
  // read; exhausted; invalid.
  virtual void change_records(RecordsWish wish, RecordsAnswer answer) = 0;
  // How urgent a job is among those of its share. Errors: conflict, when it is over.
  virtual void prioritise_job(domain::JobKey key, int64_t priority, Answer answer) = 0;
  virtual void set_tags(std::string arn, std::vector<domain::Tag> add, std::vector<std::string> remove_keys,
                        TagAnswer answer) = 0;

  // -- reads: from an immutable view or from tables, never behind the writer
  // Also a child that its array has not made yet.
  virtual Result<std::shared_ptr<const domain::Job>> find(const domain::JobKey& key) = 0;
  virtual Result<ledger::JobPage> list(const ledger::JobQuery& query) = 0;
  virtual Result<std::vector<domain::Tag>> tags(const std::string& arn) = 0;
  // What lives in memory, by number: jobs that are not over, and those that still hold something.
  virtual std::vector<std::shared_ptr<const domain::Job>> live_jobs() = 0;
  // Who stands at the front of each queue, as the last turn of reconciling saw it; never nullptr.
  virtual std::shared_ptr<const reconcile::Fronts> fronts() = 0;
  // What the wall clock is ahead of control's time (control_time.hpp).
  virtual Duration clock_offset() = 0;
  // How many children of an array are in each status; those are counted that were not made yet.
  virtual Result<domain::ChildCounts> count_children(const domain::Job& array) = 0;
  // In the order of their index, from query.first on; those that were not made yet are shown as they will be.
  virtual Result<std::vector<domain::Job>> children(const domain::Job& array,
                                                    const ledger::ChildQuery& query) = 0;
  // All of Batch's nouns but definitions; never nullptr.
  virtual std::shared_ptr<const domain::BatchCatalog> batch_catalog() = 0;
  // The documents of front ends; never nullptr.
  virtual std::shared_ptr<const domain::Records> records() = 0;
  virtual Result<std::vector<domain::JobDefinition>> definitions(const ledger::DefinitionQuery& query) = 0;

  // -- the loops
  virtual void commit_step() = 0;
  // How long looking and deciding took, which grows with the jobs, and what then failed, which is tried again. What was
  // started and removed is not in it.
  virtual std::chrono::nanoseconds reconcile_step() = 0;
};

// The same with what only its own parts may do: agents report, loops are woken, watchers are told.
class ControlPlane : public Control {
 public:
  using Control::find;
  virtual Result<std::shared_ptr<const domain::Job>> find(domain::JobNumber number) = 0;
  // A fact of a host's agent (control::Agents hands it in).
  virtual void report(domain::AttemptId attempt, domain::HostIndex host, wire::StateFact fact,
                      FactAnswer answer) = 0;
  // Called, from any thread, when a step has something to do; it must not block or call back. May be set at any time;
  // when this returns, what was set before is called no more.
  virtual void on_due(std::function<void()> commit, std::function<void()> reconcile) = 0;
  // Requires: called before the loops start. Lifetime: what the watcher refers to outlives the loops.
  virtual void watch(Watcher watcher) = 0;
};

// Loads what is not finished from the ledger. Errors: the ledger's.
Result<std::unique_ptr<ControlPlane>> make_control(Settings settings, ledger::Ledger& ledger,
                                                   launch::Launcher& launcher, observe::Logs& logs,
                                                   Clock& clock, Random& random);

// The ARN of a training job.
std::string job_arn(const std::string& account, const domain::JobKey& key);
// The ARN of any job.
std::string job_arn(const domain::Job& job);

}  // namespace trainyard::control
