// Where jobs of AWS Batch are submitted and what they are made from: job queues, compute environments, job definitions.
// The jobs themselves are jobs like all others (job.hpp, batch_job.hpp).
//
// `request` of each holds what its face was told, in the face's own members, for Describe to echo.
//
// Threads: plain values; pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "domain/batch_policy.hpp"
#include "domain/job.hpp"

namespace trainyard::domain {

// Some of what there is to run jobs on.
struct ComputeEnvironment {
  JobKey key;
  bool enabled = true;
  double cpus_max = 0;  // of all its jobs together; 0: as many as there are (unmanaged)
  // Of machines that can be made on demand: vCPU that are kept though idle, and that are wished for by hand now.
  double cpus_min = 0;
  double cpus_desired = 0;
  std::vector<std::string> instance_types = {};  // "c5.4xlarge", "c5", "optimal"
  bool spot = false;                             // its machines may be taken back
  Json request = Json::object();
};

// What becomes of a job that has stood at the head of its queue, ready to run, for too long.
struct WaitLimit {
  int64_t seconds_max = 0;
  bool terminate = false;  // else it is cancelled
  std::string reason;      // in its user's words
};

struct JobQueue {
  JobKey key;
  bool enabled = true;                    // takes new jobs; those that it has go on either way
  int64_t priority = 0;                   // higher goes first
  std::vector<std::string> environments;  // names, in the order in which they are tried
  bool service = false;                   // takes training jobs (service jobs), in service environments
  std::string policy;                     // name of its scheduling policy; "": in the order of submission
  std::vector<WaitLimit> wait_limits;
  Json request = Json::object();
};

struct JobDefinition {
  JobKey key;
  uint32_t revision = 0;  // 1, 2, .. of its name
  bool active = true;
  Json request = Json::object();
};

using BatchResource = std::variant<ComputeEnvironment, JobQueue, JobDefinition, SchedulingPolicy,
                                   ServiceEnvironment, QuotaShare, ConsumableResource>;

// All of them but definitions: some dozens. (Of definitions there may be thousands: the ledger has them.)
struct BatchCatalog {
  std::map<JobKey, ComputeEnvironment> environments;
  std::map<JobKey, JobQueue> queues;
  std::map<JobKey, SchedulingPolicy> policies;
  std::map<JobKey, ServiceEnvironment> service_environments;
  std::map<JobKey, QuotaShare> quota_shares;
  std::map<JobKey, ConsumableResource> resources;

  const ComputeEnvironment* environment(const JobKey& key) const;
  const JobQueue* queue(const JobKey& key) const;
  // nullptr: it has none.
  const SchedulingPolicy* policy_of(const JobQueue& queue) const;
  const ServiceEnvironment* service_environment(const JobKey& key) const;
  const QuotaShare* quota_share(const JobKey& key) const;
  const ConsumableResource* resource(const JobKey& key) const;
};

inline constexpr size_t kEnvironmentsMax = 50;                                       // of a region, as AWS
inline constexpr size_t kQueuesMax = 50;                                             // of a region, as AWS
inline constexpr size_t kEnvironmentsOfQueueMax = 3;                                 // as AWS
inline constexpr int64_t kWaitLimitSecondsMin = 600, kWaitLimitSecondsMax = 86'400;  // as AWS
inline constexpr size_t kWaitLimitsMax = 10;  // of a queue: each is looked at with each turn
// Jobs of no queue are as urgent as those of a queue of this priority.
inline constexpr int64_t kPriorityOfOthers = 1;

enum class ResourceChange { create, update, remove };

// The noun as it is after the change; `last` is the definition's last revision, where there is one. A definition is
// created with the next revision, and is never removed, only made inactive (an update).
// Errors: in words for the client: conflict (taken, in use, not disabled), not_found, invalid (too many).
Result<BatchResource> changed(const BatchCatalog& yard, const JobDefinition* last, ResourceChange how,
                              BatchResource resource);
// Puts the noun, which changed() gave, where it belongs; definitions belong nowhere here.
void put(BatchCatalog& yard, ResourceChange how, const BatchResource& resource);

// Whether a job may be put into that queue. Errors: invalid, in words for the client: the queue is of another kind, is
// disabled, or shares its capacity in another way; what the job consumes does not exist.
Result<void> check_fits_queue(const BatchCatalog& yard, const JobQueue& queue, const BatchPart& part);

std::string batch_arn(const std::string& account, const std::string& region, std::string_view kind,
                      const std::string& name);
// The part of an ARN after "KIND/", or `text` itself when it is not an ARN of that kind.
std::string_view name_in_arn(std::string_view text, std::string_view kind);
inline constexpr std::string_view kEnvironmentArn = "compute-environment";
inline constexpr std::string_view kQueueArn = "job-queue";
inline constexpr std::string_view kDefinitionArn = "job-definition";
inline constexpr std::string_view kJobArn = "job";
inline constexpr std::string_view kServiceJobArn = "service-job";
inline constexpr std::string_view kPolicyArn = "scheduling-policy";
inline constexpr std::string_view kServiceEnvironmentArn = "service-environment";
inline constexpr std::string_view kQuotaShareArn = "quota-share";  // of "QUEUE/SHARE"
inline constexpr std::string_view kResourceArn = "consumable-resource";

// -- a Batch job, as its face and its container see it. Requires: job.spec.batch.

enum class BatchStatus { submitted, pending, runnable, starting, running, succeeded, failed };
std::string_view to_string(BatchStatus);  // "RUNNABLE"
BatchStatus batch_status(const Job& job);
// Of one node of a multi-node parallel job. Requires: there is such a host.
BatchStatus node_status(const Job& job, HostIndex host);
std::string node_status_reason(const Job& job, HostIndex host);
// The states that a job of that status may be in.
std::vector<JobState> states_of(BatchStatus status);

// Of an attempt of this job that failed or ended. The words of AWS, since rules match them.
AttemptEnd end_of(const Job& job, const Attempt& attempt);
// What is told of a container beside its exit code; nothing of what it wrote itself.
std::string container_reason(Fault fault, const std::string& failure);
// statusReason: why it waits, or how it ended.
std::string batch_status_reason(const Job& job);
// AWS_BATCH_*: what the container of a host of this attempt finds.
std::map<std::string, std::string> batch_variables(const Job& job, const Attempt& attempt, HostIndex host);
// Of the hosts that follow a main host: its address, which the launcher gives.
inline constexpr std::string_view kMainAddressVariable = "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS";
inline constexpr std::string_view kReservedVariables = "AWS_BATCH_";

std::string_view kind_of(const BatchResource&);  // "job_queue"
const JobKey& key_of(const BatchResource&);
Json to_json(const BatchResource&);
Result<BatchResource> batch_resource_from_json(std::string_view kind, const Json&);

}  // namespace trainyard::domain
