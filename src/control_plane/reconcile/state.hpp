// Applies commands to jobs. apply() gets the job that a command concerns, and the instant, and
// returns the changed job. The ledger stores each command that changed something; applying them
// again in order gives the same jobs and tags (a test does).
//
// Threads: pure.
// Errors:  conflict (the job's state does not allow it; a gap in facts), not_found, invalid, denied
//          (an old attempt).
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
  // The time between SIGTERM and SIGKILL; 0: the processes are killed at once, even if the job is
  // already stopping. nullopt (in records of earlier versions): the configured time.
  std::optional<Duration> grace = {};
  std::string reason = {};  // shown to users: "killed by user/ann"; "": none
};

struct SetTags {
  std::string arn;
  std::vector<domain::Tag> add;
  std::vector<std::string> remove_keys;
};

// Starts the next attempt of a waiting job on the planned machines.
struct StartAttempt : schedule::Start {
  std::string token = {};   // the attempt's fencing token
  bool spot = false;        // the environment has spot machines
  bool mutual_tls = false;  // as Attempt::mutual_tls
};

// A report of a host's agent.
struct Fact {
  domain::AttemptId attempt;
  domain::HostIndex host = 0;
  wire::StateFact fact;
};

// Ends hosts that will never report again, with the reason.
struct Lose {
  domain::AttemptId attempt;
  std::vector<domain::HostIndex> hosts;
  domain::Fault fault = domain::Fault::internal;
  std::string reason;
};

// Stops a job that has reached a limit of its run or waiting time.
struct Expire {
  domain::JobNumber job = 0;
  domain::StopCause cause = domain::StopCause::max_runtime;  // or max_wait, max_pending
  std::optional<Duration> grace = {};                        // as in StopJob
};

// Interrupts the job's current attempt, with notice; the job then waits for the next one.
struct Interrupt {
  domain::JobNumber job = 0;
  uint32_t attempt = 0;                   // applies only to this attempt; 0: the current one
  std::optional<domain::HostIndex> host;  // the interrupted host; its peers end with it
  Duration notice{};                      // between SIGTERM and SIGKILL
  std::string reason;
  bool preemption = false;  // true: for another job
};

// Changes how long the job's hosts are kept after its end; 0: they are not kept.
struct KeepAlive {
  domain::JobNumber job = 0;
  int64_t seconds = 0;
};

// Ends a finished job's warm pool: its hosts are released, or were taken over by another job.
struct EndPool {
  domain::JobNumber job = 0;
  std::string reused_by;  // the other job's name; "": released
};

// Cancels a job. The job must still wait if a user cancels it or its dependency failed; otherwise
// it may run.
struct CancelJob {
  domain::JobNumber job = 0;
  domain::Cancellation how = domain::Cancellation::terminated;
  std::string reason;
  std::optional<Duration> grace = {};  // as in StopJob
};

// Removes a dependency of the job that has succeeded.
struct StopAwaiting {
  domain::JobNumber job = 0;
  domain::JobNumber awaited = 0;
};

// Creates, changes or removes a queue, environment or definition.
struct ChangeResource {
  batch::ResourceChange how = batch::ResourceChange::create;
  batch::Resource resource;
};

// Creates the next children of an array; one record for all of them.
struct MakeChildren {
  domain::JobNumber array = 0;
  // In the order of their index, including children that were cancelled before.
  uint32_t count = 0;
};

// Finishes an array whose children have all ended.
struct FinishArray {
  domain::JobNumber array = 0;
  bool failed = false;  // at least one of them failed
};

// Sets the priority of a job within its share.
struct Prioritise {
  domain::JobNumber job = 0;
  int64_t priority = 0;
};

// Fails a job whose data is invalid, and its attempt.
struct Fail {
  domain::JobNumber job = 0;
  std::string reason;
};

// Stores and removes records of the API layer, together or not at all.
struct ChangeRecords {
  std::vector<domain::RecordWrite> writes;
  // Records::version as the caller read it; not stored in the ledger.
  std::optional<uint64_t> expected = {};
};

using Command = std::variant<CreateJob, StopJob, SetTags, StartAttempt, Fact, Lose, Expire,
                             Interrupt, KeepAlive, EndPool, CancelJob, StopAwaiting, ChangeResource,
                             MakeChildren, FinishArray, Prioritise, Fail, ChangeRecords>;

// The state that a command concerns, before the command; nullptr for parts that it does not
// concern. A child that was not created yet is passed as its array would create it
// (domain::child_of).
struct Subject {
  const domain::Job* job = nullptr;
  const std::vector<domain::Tag>* tags = nullptr;  // of the resource that the ARN names
  const batch::Catalog* catalog = nullptr;
  const batch::JobDefinition* definition = nullptr;  // the last revision of the named definition
  std::set<domain::JobNumber> made_before = {};      // the children to create that exist already
  const domain::Records* records = nullptr;
};

// The changes of a command. They are empty if it was applied before, or has no effect any longer.
struct Change {
  std::optional<domain::Job> job;
  std::optional<std::pair<std::string, std::vector<domain::Tag>>> tags;  // all tags of an ARN
  std::optional<batch::Resource> resource;              // the new one, or the removed one
  std::vector<domain::Job> children = {};               // the created children
  std::shared_ptr<const domain::Records> records = {};  // all records after the command
  bool nothing() const { return !job && !tags && !resource && !records; }
};

// `at` is control's time (control_time.hpp).
Result<Change> apply(const Subject& subject, const Command& command, Instant at);

// Returns the number of the job that a command concerns; nullopt if it concerns none.
std::optional<domain::JobNumber> job_of(const Command& command);

// -- records of the ledger
std::string_view kind_of(const Command& command);
Json body_of(const Command& command);
Result<Command> command_of(const ledger::CommandRecord& record);

// -- texts and names that users see
// Returns "training-job/mnist", "job/mnist (4b7d..)", for messages.
std::string job_title(const domain::Job& job);
// Returns the pending reason of jobs that cannot be planned because of a fault of the platform.
std::string planning_failed(const std::string& fault);
// Returns the time between SIGTERM and SIGKILL. `usual` is the configured time.
Duration stop_grace_of(const domain::Job& job, Duration usual);
// Lifetime: the job's.
std::string_view log_group_of(const domain::Job& job, domain::HostIndex host);
// Returns "<job>/algo-1-1763631900", for Batch jobs "<definition>/default/<32 digits>". Each
// attempt has its own streams, even if two started within a second.
std::string log_stream_of(const domain::Job& job, const domain::Attempt& attempt,
                          domain::HostIndex host);
// Return ARNs as ECS would assign them: for the host, with the digits of its log stream; for its
// machine, with digits that identify it. Require: a plain job; for an earlier attempt, its main
// host.
std::string task_arn(const domain::Job& job, const domain::Attempt& attempt,
                     domain::HostIndex host);
std::string container_instance_arn(const domain::Job& job, const domain::Attempt& attempt,
                                   domain::HostIndex host);
inline constexpr std::string_view kLogGroup = contract::kTrainingLogGroup;
// Characters of a definition's name in the names of its streams, as on AWS.
inline constexpr size_t kDefinitionInStreamMax = 200;
inline constexpr std::string_view kMetricNameSpace = contract::kTrainingMetricNamespace;
inline constexpr size_t kTagsMax = 50;  // AWS's limit for a resource
// Limits the attempts of one job. Each stays in its record, with some 200 bytes. A spot job of 28
// days that is interrupted each hour has 672.
inline constexpr size_t kAttemptsMax = 1'000;
inline constexpr size_t kFailureReasonBytesMax = 1'024;  // the model's limit for FailureReason

}  // namespace trainyard::reconcile
