// Applies commands to jobs. apply() takes the job that a command concerns, and the instant, and
// returns the job after it. The ledger stores each command that changed something; applier them
// again in order yields the same jobs and tags (a test does).
//
// Threads: pure.
// Errors:  conflict (the job's state does not allow it; a gap in facts), not_found, invalid, denied
//          (an old
// attempt).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "batch/catalog.hpp"
#include "contract/aws_texts.hpp"
#include "domain/job.hpp"
#include "domain/record.hpp"
#include "ledger/ledger.hpp"
#include "reconcile/create_job.hpp"
#include "schedule/plan.hpp"
#include "wire/messages.hpp"

namespace trainyard::reconcile {

struct StopJob {
  domain::JobNumber job = 0;
  // Between SIGTERM and SIGKILL; 0: the processes are killed at once, also those of a job that is
  // already stopping. Unset in records of earlier versions: as configured.
  std::optional<Duration> grace = {};
  std::string reason = {};  // shown to users: "killed by user/ann"; "": none
};

struct SetTags {
  std::string arn;
  std::vector<domain::Tag> add;
  std::vector<std::string> remove_keys;
};

// A waiting job gets machines for its next attempt, as the plan says.
struct StartAttempt : schedule::Start {
  std::string token = {};  // of the attempt
  bool spot = false;       // the environment has spot machines
};

// A report of a host's agent.
struct Fact {
  domain::AttemptId attempt;
  domain::HostIndex host = 0;
  wire::StateFact fact;
};

// Hosts that will never report again, and why.
struct Lose {
  domain::AttemptId attempt;
  std::vector<domain::HostIndex> hosts;
  domain::Fault fault = domain::Fault::internal;
  std::string reason;
};

// The job has run or waited for as long as it may.
struct Expire {
  domain::JobNumber job = 0;
  domain::StopCause cause = domain::StopCause::max_runtime;  // or max_wait, max_pending
  std::optional<Duration> grace = {};                        // as in StopJob
};

// The job's present attempt is interrupted, with notice, and another one follows.
struct Interrupt {
  domain::JobNumber job = 0;
  uint32_t attempt = 0;                   // this one or none; 0: the current one
  std::optional<domain::HostIndex> host;  // the interrupted host; its peers end with it
  Duration notice{};                      // between SIGTERM and SIGKILL
  std::string reason;
  bool preemption = false;  // for a job with priority
};

// Changes how long the job's hosts are kept after its end; 0: not at all.
struct KeepAlive {
  domain::JobNumber job = 0;
  int64_t seconds = 0;
};

// The hosts that a finished job kept are released, or were taken over by another job.
struct EndPool {
  domain::JobNumber job = 0;
  std::string reused_by;  // that job's name; "": released
};

// A job is cancelled. One that was cancelled by a user, or whose dependency failed, must still
// wait; others may run.
struct CancelJob {
  domain::JobNumber job = 0;
  domain::Cancellation how = domain::Cancellation::terminated;
  std::string reason;
  std::optional<Duration> grace = {};  // as in StopJob
};

// A job that it depends on has succeeded.
struct StopAwaiting {
  domain::JobNumber job = 0;
  domain::JobNumber awaited = 0;
};

// A queue, environment or definition is created, changed or removed.
struct ChangeResource {
  batch::ResourceChange how = batch::ResourceChange::create;
  batch::Resource resource;
};

// The next children of an array become jobs of their own: one record for many.
struct MakeChildren {
  domain::JobNumber array = 0;
  // in the order of their index; children that were cancelled before are counted
  uint32_t count = 0;
};

// All children of an array are over.
struct FinishArray {
  domain::JobNumber array = 0;
  bool failed = false;  // at least one of them failed
};

// Sets the priority of a job within its share.
struct Prioritise {
  domain::JobNumber job = 0;
  int64_t priority = 0;
};

// No free capacity lets the job be planned or continued: it fails alone, and its attempt with
// it.
struct Fail {
  domain::JobNumber job = 0;
  std::string reason;
};

// Documents of front ends are stored or removed: all of them, or none.
struct ChangeRecords {
  std::vector<domain::RecordWrite> writes;
  // Records::version as the caller saw it; not kept in the ledger
  std::optional<uint64_t> expected = {};
};

using Command = std::variant<CreateJob, StopJob, SetTags, StartAttempt, Fact, Lose, Expire,
                             Interrupt, KeepAlive, EndPool, CancelJob, StopAwaiting, ChangeResource,
                             MakeChildren, FinishArray, Prioritise, Fail, ChangeRecords>;

// The state that a command concerns, before the command; nothing where there is none. A child that
// was not created yet is passed as its array would create it (domain::child_of).
struct Subject {
  const domain::Job* job = nullptr;
  const std::vector<domain::Tag>* tags = nullptr;  // of the resource that the ARN names
  const batch::Catalog* catalog = nullptr;
  const batch::JobDefinition* definition = nullptr;  // the last revision of the one that is named
  std::set<domain::JobNumber> made_before =
      {};  // of the children to make, those that are jobs of their own already
  const domain::Records* records = nullptr;
};

// The changes of a command. Empty: it had been applied before, or is too late to matter.
struct Change {
  std::optional<domain::Job> job;
  std::optional<std::pair<std::string, std::vector<domain::Tag>>> tags;  // arn -> all of them
  std::optional<batch::Resource> resource;                               // as it is now, or was
  std::vector<domain::Job> children = {};                                // that were created
  std::shared_ptr<const domain::Records> records = {};                   // all, as they are now
  bool nothing() const { return !job && !tags && !resource && !records; }
};

// `at` is control's time (control_time.hpp).
Result<Change> apply(const Subject& subject, const Command& command, Instant at);

// The job that a command concerns: by number; nothing for tags.
std::optional<domain::JobNumber> job_of(const Command& command);

// -- as the ledger stores them
std::string_view kind_of(const Command& command);
Json body_of(const Command& command);
Result<Command> command_of(const ledger::CommandRecord& record);

// -- texts and names that the API shows
// "training-job/mnist", "job/mnist (4b7d..)", for messages
std::string job_title(const domain::Job& job);
// The pending reason of jobs that cannot be planned because of a fault of the platform.
std::string planning_failed(const std::string& fault);
// The time between SIGTERM and SIGKILL; `usual` is the configured one.
Duration stop_grace_of(const domain::Job& job, Duration usual);
// Lifetime: the job's.
std::string_view log_group_of(const domain::Job& job, domain::HostIndex host);
// "<job>/algo-1-1763631900", of Batch jobs "<definition>/default/<32 digits>": each attempt has its
// own streams, also when two started within a second.
std::string log_stream_of(const domain::Job& job, const domain::Attempt& attempt,
                          domain::HostIndex host);
// The name that ECS would give to the running host: with the digits of its log stream, and with
// some that identify the machine. Requires: a plain job; of an earlier attempt, its main host.
std::string task_arn(const domain::Job& job, const domain::Attempt& attempt,
                     domain::HostIndex host);
std::string container_instance_arn(const domain::Job& job, const domain::Attempt& attempt,
                                   domain::HostIndex host);
inline constexpr std::string_view kLogGroup = contract::kTrainingLogGroup;
inline constexpr size_t kDefinitionInStreamMax =
    200;  // characters of a definition's name in its streams' names, as AWS
inline constexpr std::string_view kMetricNameSpace = contract::kTrainingMetricNamespace;
inline constexpr size_t kTagsMax = 50;  // AWS's limit for a resource
// The limit of one job. Each attempt stays in its record, with some 200 bytes. A spot job of 28
// days that is interrupted each hour makes 672.
inline constexpr size_t kAttemptsMax = 1'000;
inline constexpr size_t kFailureReasonBytesMax = 1'024;  // the model's limit for FailureReason

}  // namespace trainyard::reconcile
