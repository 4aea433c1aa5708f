#include "control/admission.hpp"

#include <algorithm>

#include "control/state.hpp"

namespace trainyard::control {
namespace {

using namespace domain;

// Its instances by type.
std::map<std::string, int64_t> instances_of(const JobSpec& spec) {
  std::map<std::string, int64_t> count;
  for (const InstanceGroup& group : spec.groups) count[group.instance_type] += group.count;
  return count;
}

int64_t in_unit(const std::map<std::string, int64_t>& instances, const std::string& unit) {
  if (unit != kInstancesUnit) {
    const auto found = instances.find(unit);
    return found == instances.end() ? 0 : found->second;
  }
  int64_t all = 0;
  for (const auto& [type, count] : instances) all += count;
  return all;
}

}  // namespace

Admission::Admission(const BatchYard& yard, const std::vector<std::shared_ptr<const Job>>& jobs)
    : yard_(yard), consumed_(consumed_by(jobs)) {
  for (const auto& job : jobs) {
    if (!job->spec.batch || !job->spec.batch->service || !job->attempt()) continue;
    if (job->attempt()->state == AttemptState::ended || job->attempt()->environment.empty()) continue;
    Used& used = used_[{job->key.region, job->attempt()->environment}];
    for (const auto& [type, count] : instances_of(job->spec)) used[type] += count;
  }
}

Result<std::string> Admission::admit(const Job& job) {
  const BatchPart& part = *job.spec.batch;
  std::string lack;
  for (const Consumption& each : part.consumes) {
    const JobKey key{job.key.region, each.resource};
    const auto first = blocked_resources_.find(key);
    std::string more = first != blocked_resources_.end()
                           ? "waits for its turn behind " + first->second +
                                 ", which waits for the consumable resource " + each.resource
                           : lack_of(key, each.quantity);
    if (more.empty()) continue;
    blocked_resources_.try_emplace(key, job_title(job));
    lack += (lack.empty() ? "" : "; ") + more;
  }
  if (!lack.empty()) return invalid(std::move(lack));
  std::string environment;
  if (part.service) environment = TRY(find_environment(job));
  for (const Consumption& each : part.consumes) {
    const JobKey key{job.key.region, each.resource};
    given_[key] += each.quantity;
  }
  if (environment.empty()) return environment;
  Used& used = used_[{job.key.region, environment}];
  for (const auto& [type, count] : instances_of(job.spec)) used[type] += count;
  return environment;
}

Result<std::string> Admission::find_environment(const Job& job) {
  const JobQueue* queue = yard_.queue({job.key.region, job.spec.batch->queue});
  std::string reasons;
  std::vector<JobKey> full;
  for (const std::string& name : queue->environments) {
    const JobKey key{job.key.region, name};
    const ServiceEnvironment* environment = yard_.service_environment(key);
    if (!environment || !environment->enabled) continue;
    const auto first = blocked_environments_.find(key);
    std::string lack = first != blocked_environments_.end()
                           ? "waits for its turn behind " + first->second +
                                 ", which waits for the service environment " + name
                           : lack_of(*environment, job);
    if (lack.empty()) return name;
    reasons += (reasons.empty() ? "" : "; ") + lack;
    // What could never hold it is not kept free for it.
    bool never = false;
    const auto instances = instances_of(job.spec);
    for (const CapacityLimit& limit : environment->limits)
      never |= in_unit(instances, limit.unit) > limit.capacity;
    if (!never) full.push_back(key);
  }
  for (const JobKey& key : full) blocked_environments_.try_emplace(key, job_title(job));
  if (reasons.empty())
    reasons =
        "waits for a service environment: none of job queue " + queue->key.name + " is there and enabled";
  return invalid(std::move(reasons));
}

std::string Admission::lack_of(const ServiceEnvironment& environment, const Job& job) const {
  const auto instances = instances_of(job.spec);
  const auto found = used_.find(environment.key);
  std::string reasons;
  for (const CapacityLimit& limit : environment.limits) {
    const int64_t needs = in_unit(instances, limit.unit);
    const int64_t used = found == used_.end() ? 0 : in_unit(found->second, limit.unit);
    if (needs == 0 || used + needs <= limit.capacity) continue;
    const std::string unit = limit.unit == kInstancesUnit ? "instances" : limit.unit;
    if (!reasons.empty()) reasons += "; ";
    reasons += "waits for " + std::to_string(used + needs - limit.capacity) + " more " + unit +
               " of service environment " + environment.key.name + " (needs " + std::to_string(needs) + ", " +
               std::to_string(used) + " of its " + std::to_string(limit.capacity) + " are used)";
    if (needs > limit.capacity) reasons += ": raise its maxCapacity";
  }
  return reasons;
}

std::string Admission::lack_of(const JobKey& key, int64_t quantity) const {
  const ConsumableResource* resource = yard_.resource(key);
  if (!resource) return "waits for the consumable resource " + key.name + ", which does not exist any more";
  const auto in = [&](const Consumed& consumed) {
    const auto found = consumed.find(key);
    return found == consumed.end() ? 0 : found->second;
  };
  // What is not replenishable was taken from the total when its jobs began.
  const int64_t left = resource->total - in(given_) - (resource->replenishable ? in(consumed_) : 0);
  if (quantity <= left) return "";
  return "waits for " + std::to_string(quantity - left) + " more of consumable resource " + key.name +
         " (needs " + std::to_string(quantity) + ", " + std::to_string(std::max<int64_t>(0, left)) + " of " +
         std::to_string(resource->total) + " are left)" +
         (quantity > resource->total ? ": raise its total quantity" : "");
}

}  // namespace trainyard::control
