// Catalogs what jobs of AWS Batch are submitted to and made from: job queues, compute environments, job definitions.
// The jobs themselves are jobs like all others (domain/job.hpp).
//
// `request` of each holds the client's request with the members of AWS Batch, for Describe to echo.
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

// Some of what there is to run jobs on.
struct ComputeEnvironment {
  domain::JobKey key;
  bool enabled = true;
  double cpus_max = 0;  // of all its jobs together; 0: as many as there are (unmanaged)
  // Of machines that can be made on demand: vCPU that are kept though idle, and that are wished for by hand now.
  double cpus_min = 0;
  double cpus_desired = 0;
  std::vector<std::string> instance_types = {};  // "c5.4xlarge", "c5", "optimal"
  bool spot = false;                             // its machines may be reclaimed
  Json request = Json::object();
};

// What becomes of a job that has stood at the head of its queue, ready to run, for too long.
struct WaitLimit {
  int64_t seconds_max = 0;
  bool terminate = false;  // else it is cancelled
  std::string reason;      // in its user's words
};

struct JobQueue {
  domain::JobKey key;
  bool enabled = true;                    // takes new jobs; those that it has go on either way
  int64_t priority = 0;                   // higher goes first
  std::vector<std::string> environments;  // names, in the order in which they are tried
  bool service = false;                   // takes training jobs (service jobs), in service environments
  std::string policy;                     // name of its scheduling policy; "": in the order of submission
  std::vector<WaitLimit> wait_limits;
  Json request = Json::object();
};

struct JobDefinition {
  domain::JobKey key;
  uint32_t revision = 0;  // 1, 2, .. of its name
  bool active = true;
  Json request = Json::object();
};

using Resource = std::variant<ComputeEnvironment, JobQueue, JobDefinition, SchedulingPolicy,
                              ServiceEnvironment, QuotaShare, ConsumableResource>;

// All of them but definitions: some dozens. (Of definitions there may be thousands: the ledger has them.)
struct Catalog {
  std::map<domain::JobKey, ComputeEnvironment> environments;
  std::map<domain::JobKey, JobQueue> queues;
  std::map<domain::JobKey, SchedulingPolicy> policies;
  std::map<domain::JobKey, ServiceEnvironment> service_environments;
  std::map<domain::JobKey, QuotaShare> quota_shares;
  std::map<domain::JobKey, ConsumableResource> resources;

  const ComputeEnvironment* environment(const domain::JobKey& key) const;
  const JobQueue* queue(const domain::JobKey& key) const;
  // nullptr: it has none.
  const SchedulingPolicy* policy_of(const JobQueue& queue) const;
  const ServiceEnvironment* service_environment(const domain::JobKey& key) const;
  const QuotaShare* quota_share(const domain::JobKey& key) const;
  const ConsumableResource* resource(const domain::JobKey& key) const;
};

inline constexpr size_t kEnvironmentsMax = 50;                                       // of a region, as AWS
inline constexpr size_t kQueuesMax = 50;                                             // of a region, as AWS
inline constexpr size_t kEnvironmentsOfQueueMax = 3;                                 // as AWS
inline constexpr int64_t kWaitLimitSecondsMin = 600, kWaitLimitSecondsMax = 86'400;  // as AWS
inline constexpr size_t kWaitLimitsMax = 10;  // of a queue: each is checked in each iteration
enum class ResourceChange { create, update, remove };

// Returns the resource after the change; `last` is the definition's last revision, if there is one. A definition is
// created with the next revision, and is never removed, only made inactive (an update).
// Errors: with a text for the client: conflict (taken, in use, not disabled), not_found, invalid (too many).
Result<Resource> changed(const Catalog& yard, const JobDefinition* last, ResourceChange how,
                         Resource resource);
// Puts the resource that changed() returned into the catalog; definitions are not part of it.
void put(Catalog& yard, ResourceChange how, const Resource& resource);

// For how long what the queue's shares have used counts; of the empty key: what jobs of no queue have used.
Duration decay_of(const Catalog& yard, const domain::JobKey& queue);

// Whether a job of this spec may be put into that queue. Requires: spec.queue. Errors: invalid, in words for the client: the queue is of another kind, is
// disabled, or shares its capacity in another way; what the job consumes does not exist.
Result<void> check_fits_queue(const Catalog& yard, const JobQueue& queue, const domain::JobSpec& spec);

std::string_view kind_of(const Resource&);  // "job_queue"
const domain::JobKey& key_of(const Resource&);
Json to_json(const Resource&);
Result<Resource> resource_from_json(std::string_view kind, const Json&);

}  // namespace trainyard::batch
