// Catalog holds the resources of AWS Batch: job queues, compute environments, job definitions and
// others. Batch jobs are ordinary jobs (domain/job.hpp).
//
// The member `request` of a resource is the client's request, with the members of AWS Batch;
// Describe returns it.
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
#include "base/time.hpp"
#include "batch/policy.hpp"
#include "domain/job.hpp"

namespace trainyard::batch {

// A compute environment: a part of the machines, on which jobs of its queues run.
struct ComputeEnvironment {
  domain::JobKey key;
  bool enabled = true;
  double cpus_max = 0;  // the vCPUs of all its jobs together; 0: unlimited (unmanaged)
  // For machines that are added on demand: the vCPUs that are kept even when idle, and the vCPUs
  // that a user has requested.
  double cpus_min = 0;
  double cpus_desired = 0;
  std::vector<std::string> instance_types = {};  // "c5.4xlarge", "c5", "optimal"
  bool spot = false;                             // its machines may be reclaimed
  Json request = Json::object();
};

// Limits the time for which a job may wait at the head of its queue (jobStateTimeLimitActions).
struct WaitLimit {
  int64_t seconds_max = 0;
  bool terminate = false;  // true: the job is terminated; false: it is cancelled
  std::string reason;      // the text of the queue's creator
};

struct JobQueue {
  domain::JobKey key;
  bool enabled = true;                    // accepts new jobs; its current jobs continue in any case
  int64_t priority = 0;                   // higher goes first
  std::vector<std::string> environments;  // names, in the order in which they are tried
  // True: for training jobs (service jobs), in service environments.
  bool service = false;
  // The name of its scheduling policy; "": jobs start in the order of submission.
  std::string policy;
  std::vector<WaitLimit> wait_limits;
  Json request = Json::object();
};

struct JobDefinition {
  domain::JobKey key;
  uint32_t revision = 0;  // 1, 2, .. for each name
  bool active = true;
  Json request = Json::object();
};

using Resource = std::variant<ComputeEnvironment, JobQueue, JobDefinition, SchedulingPolicy,
                              ServiceEnvironment, QuotaShare, ConsumableResource>;

// All resources except definitions: a few dozen. There may be thousands of definitions, which only
// the ledger holds.
struct Catalog {
  std::map<domain::JobKey, ComputeEnvironment> environments;
  std::map<domain::JobKey, JobQueue> queues;
  std::map<domain::JobKey, SchedulingPolicy> policies;
  std::map<domain::JobKey, ServiceEnvironment> service_environments;
  std::map<domain::JobKey, QuotaShare> quota_shares;
  std::map<domain::JobKey, ConsumableResource> resources;

  const ComputeEnvironment* environment(const domain::JobKey& key) const;
  const JobQueue* queue(const domain::JobKey& key) const;
  // Returns nullptr if the queue has no policy.
  const SchedulingPolicy* policy_of(const JobQueue& queue) const;
  const ServiceEnvironment* service_environment(const domain::JobKey& key) const;
  const QuotaShare* quota_share(const domain::JobKey& key) const;
  const ConsumableResource* resource(const domain::JobKey& key) const;
};

inline constexpr size_t kEnvironmentsMax = 50;        // per region, as AWS
inline constexpr size_t kQueuesMax = 50;              // per region, as AWS
inline constexpr size_t kEnvironmentsOfQueueMax = 3;  // as AWS
inline constexpr int64_t kWaitLimitSecondsMin = 600, kWaitLimitSecondsMax = 86'400;  // as AWS
inline constexpr size_t kWaitLimitsMax = 10;  // per queue: each is checked in each iteration
enum class ResourceChange { create, update, remove };

// Returns the resource after the change. `last` is the last revision of the definition, or nullptr.
// A definition is created with the next revision. It is never removed; an update makes it inactive.
// Errors, with a message for the client: conflict (exists, in use, not disabled), not_found,
// invalid (too many).
Result<Resource> changed(const Catalog& catalog, const JobDefinition* last, ResourceChange how,
                         Resource resource);
// Puts the resource that changed() returned into the catalog; definitions are not part of it.
void put(Catalog& catalog, ResourceChange how, const Resource& resource);

// Returns the decay time of the usage of the queue's shares. The empty key stands for jobs without
// a queue.
Duration decay_of(const Catalog& catalog, const domain::JobKey& queue);

// Checks that a job may be submitted to that queue. Requires: spec.queue.
// Errors: invalid, with a message for the client: the queue is disabled or of another type, its
// scheduling policy needs other members of the request, or a consumed resource does not exist.
Result<void> check_fits_queue(const Catalog& catalog, const JobQueue& queue,
                              const domain::JobSpec& spec);

std::string_view kind_of(const Resource&);  // "job_queue"
const domain::JobKey& key_of(const Resource&);
Json to_json(const Resource&);
Result<Resource> resource_from_json(std::string_view kind, const Json&);

}  // namespace trainyard::batch
