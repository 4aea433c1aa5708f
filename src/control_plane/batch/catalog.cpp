#include "batch/catalog.hpp"

#include <algorithm>

#include "base/json_record.hpp"
#include "base/text.hpp"
#include "domain/limits.hpp"
#include "domain/usage.hpp"

namespace trainyard::batch {

using namespace domain;

namespace {

constexpr std::string_view kKinds[] = {
    "compute_environment", "job_queue",   "job_definition",     "scheduling_policy",
    "service_environment", "quota_share", "consumable_resource"};  // in the order of Resource
static_assert(std::size(kKinds) == std::variant_size_v<Resource>);

template <class Map>
size_t count_in(const Map& map, const std::string& region) {
  return size_t(
      std::ranges::count_if(map, [&](const auto& each) { return each.first.region == region; }));
}

Result<Resource> changed_one(const Catalog& catalog, const JobDefinition*, ResourceChange how,
                             ComputeEnvironment changed) {
  const ComputeEnvironment* present = catalog.environment(changed.key);
  if (how == ResourceChange::create) {
    if (present) return conflict("Object already exists");
    if (count_in(catalog.environments, changed.key.region) >= kEnvironmentsMax)
      return invalid("a region has at most " + std::to_string(kEnvironmentsMax) +
                     " compute environments");
    return Resource(std::move(changed));
  }
  if (!present) return not_found("the compute environment " + changed.key.name + " does not exist");
  if (how == ResourceChange::update) return Resource(std::move(changed));
  if (present->enabled)
    return conflict("Cannot delete, resource must be disabled: " + changed.key.name);
  for (const auto& [key, queue] : catalog.queues)
    if (key.region == changed.key.region && !queue.service &&
        std::ranges::find(queue.environments, changed.key.name) != queue.environments.end())
      return conflict("Cannot delete, found existing JobQueue relationship: " + key.name);
  return Resource(*present);
}

// Rejects to add or remove a queue's policy, which may only be replaced by one of the same kind.
Result<void> check_same_policy(const Catalog& catalog, const JobQueue& present,
                               const JobQueue& next) {
  const SchedulingPolicy* before = catalog.policy_of(present);
  const SchedulingPolicy* after = catalog.policy_of(next);
  if (bool(before) != bool(after))
    return conflict(
        "the scheduling policy of a job queue can be replaced, but not added or removed: " +
        next.key.name);
  if (before && before->kind != after->kind)
    return conflict("a fair-share policy cannot replace a quota-share policy, nor the reverse: " +
                    next.key.name);
  return {};
}

Result<Resource> changed_one(const Catalog& catalog, const JobDefinition*, ResourceChange how,
                             JobQueue changed) {
  const JobQueue* present = catalog.queue(changed.key);
  if (how == ResourceChange::create && present) return conflict("Object already exists");
  if (how != ResourceChange::create && !present)
    return not_found("the job queue " + changed.key.name + " does not exist");
  if (how == ResourceChange::create && count_in(catalog.queues, changed.key.region) >= kQueuesMax)
    return invalid("a region has at most " + std::to_string(kQueuesMax) + " job queues");
  if (how == ResourceChange::remove) {
    if (present->enabled)
      return conflict("Cannot delete, resource must be disabled: " + changed.key.name);
    for (const auto& [key, share] : catalog.quota_shares)
      if (key.region == changed.key.region && share.queue() == changed.key.name)
        return conflict("Cannot delete, found existing QuotaShare relationship: " + share.name());
    return Resource(*present);
  }
  for (const std::string& name : changed.environments)
    if (changed.service ? !catalog.service_environment({changed.key.region, name})
                        : !catalog.environment({changed.key.region, name}))
      return not_found((changed.service ? "the service environment " : "the compute environment ") +
                       name + " does not exist");
  if (!changed.policy.empty() && !catalog.policy_of(changed))
    return not_found("the scheduling policy " + changed.policy + " does not exist");
  if (!changed.service && catalog.policy_of(changed) &&
      catalog.policy_of(changed)->kind == SchedulingPolicy::Kind::quota_shares)
    return invalid("quota shares are for job queues of the type SAGEMAKER_TRAINING: " +
                   changed.key.name);
  if (how == ResourceChange::update) TRY(check_same_policy(catalog, *present, changed));
  return Resource(std::move(changed));
}

Result<Resource> changed_one(const Catalog&, const JobDefinition* last, ResourceChange how,
                             JobDefinition changed) {
  if (how == ResourceChange::create) changed.revision = last ? last->revision + 1 : 1;
  return Resource(std::move(changed));
}

// Makes the checks that these kinds share: new names are unused, changed resources exist, a region
// has at most `most`.
template <class Kind>
Result<void> check_presence(const std::map<JobKey, Kind>& all, ResourceChange how,
                            const JobKey& key, const std::string& what, size_t most) {
  const bool present = all.contains(key);
  if (how != ResourceChange::create)
    return present ? Result<void>() : not_found("the " + what + " " + key.name + " does not exist");
  if (present) return conflict("Object already exists");
  if (count_in(all, key.region) >= most)
    return invalid("a region has at most " + std::to_string(most) + " resources of the type " +
                   what);
  return {};
}

Result<Resource> changed_one(const Catalog& catalog, const JobDefinition*, ResourceChange how,
                             SchedulingPolicy changed) {
  TRY(check_presence(catalog.policies, how, changed.key, "scheduling policy", kPoliciesMax));
  if (how == ResourceChange::update && catalog.policies.at(changed.key).kind != changed.kind)
    return invalid("a fairsharePolicy cannot become a quotaSharePolicy, nor the reverse: " +
                   changed.key.name);
  if (how != ResourceChange::remove) return Resource(std::move(changed));
  for (const auto& [key, queue] : catalog.queues)
    if (key.region == changed.key.region && queue.policy == changed.key.name)
      return conflict("Cannot delete, found existing JobQueue relationship: " + key.name);
  return Resource(catalog.policies.at(changed.key));
}

Result<Resource> changed_one(const Catalog& catalog, const JobDefinition*, ResourceChange how,
                             ServiceEnvironment changed) {
  TRY(check_presence(catalog.service_environments, how, changed.key, "service environment",
                     kServiceEnvironmentsMax));
  if (how != ResourceChange::remove) return Resource(std::move(changed));
  const ServiceEnvironment& present = catalog.service_environments.at(changed.key);
  if (present.enabled)
    return conflict("Cannot delete, resource must be disabled: " + changed.key.name);
  for (const auto& [key, queue] : catalog.queues)
    if (key.region == changed.key.region && queue.service &&
        std::ranges::find(queue.environments, changed.key.name) != queue.environments.end())
      return conflict("Cannot delete, found existing JobQueue relationship: " + key.name);
  return Resource(present);
}

Result<Resource> changed_one(const Catalog& catalog, const JobDefinition*, ResourceChange how,
                             QuotaShare changed) {
  const JobQueue* queue = catalog.queue({changed.key.region, changed.queue()});
  if (!queue) return not_found("the job queue " + changed.queue() + " does not exist");
  const SchedulingPolicy* policy = catalog.policy_of(*queue);
  if (!policy || policy->kind != SchedulingPolicy::Kind::quota_shares)
    return invalid("the job queue " + changed.queue() +
                   " has no scheduling policy with a quotaSharePolicy");
  const auto of_queue = std::ranges::count_if(catalog.quota_shares, [&](const auto& each) {
    return each.first.region == changed.key.region && each.second.queue() == changed.queue();
  });
  if (how == ResourceChange::create && !catalog.quota_share(changed.key) &&
      size_t(of_queue) >= kQuotaSharesOfQueueMax)
    return invalid("a job queue has at most " + std::to_string(kQuotaSharesOfQueueMax) +
                   " quota shares");
  TRY(check_presence(catalog.quota_shares, how, changed.key, "quota share",
                     kQueuesMax * kQuotaSharesOfQueueMax));
  if (how != ResourceChange::remove) return Resource(std::move(changed));
  const QuotaShare& present = catalog.quota_shares.at(changed.key);
  if (present.enabled)
    return conflict("Cannot delete, resource must be disabled: " + changed.key.name);
  return Resource(present);
}

Result<Resource> changed_one(const Catalog& catalog, const JobDefinition*, ResourceChange how,
                             ConsumableResource changed) {
  TRY(check_presence(catalog.resources, how, changed.key, "consumable resource",
                     kConsumableResourcesMax));
  if (how != ResourceChange::remove && (changed.total < 0 || changed.total > kCountedMax))
    return invalid("the total quantity of " + changed.key.name + " must be between 0 and " +
                   std::to_string(kCountedMax) + ", not " + std::to_string(changed.total));
  if (how == ResourceChange::create) return Resource(std::move(changed));
  const ConsumableResource& present = catalog.resources.at(changed.key);
  if (how == ResourceChange::remove) return Resource(present);
  return Resource(TRY(updated(present, changed)));
}

template <class Kind>
const Kind* find_in(const std::map<JobKey, Kind>& all, const JobKey& key) {
  const auto found = all.find(key);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace

const ComputeEnvironment* Catalog::environment(const JobKey& key) const {
  return find_in(environments, key);
}
const JobQueue* Catalog::queue(const JobKey& key) const { return find_in(queues, key); }
const SchedulingPolicy* Catalog::policy_of(const JobQueue& queue) const {
  return queue.policy.empty() ? nullptr : find_in(policies, JobKey{queue.key.region, queue.policy});
}
const ServiceEnvironment* Catalog::service_environment(const JobKey& key) const {
  return find_in(service_environments, key);
}
const QuotaShare* Catalog::quota_share(const JobKey& key) const {
  return find_in(quota_shares, key);
}
const ConsumableResource* Catalog::resource(const JobKey& key) const {
  return find_in(resources, key);
}

Result<Resource> changed(const Catalog& catalog, const JobDefinition* last, ResourceChange how,
                         Resource changed) {
  return std::visit([&](auto& each) { return changed_one(catalog, last, how, std::move(each)); },
                    changed);
}

void put(Catalog& catalog, ResourceChange how, const Resource& changed) {
  const auto place = [&](auto& map, const auto& each) {
    if (how == ResourceChange::remove)
      map.erase(each.key);
    else
      map.insert_or_assign(each.key, each);
  };
  if (const auto* environment = std::get_if<ComputeEnvironment>(&changed))
    place(catalog.environments, *environment);
  if (const auto* queue = std::get_if<JobQueue>(&changed)) place(catalog.queues, *queue);
  if (const auto* policy = std::get_if<SchedulingPolicy>(&changed))
    place(catalog.policies, *policy);
  if (const auto* service = std::get_if<ServiceEnvironment>(&changed))
    place(catalog.service_environments, *service);
  if (const auto* share = std::get_if<QuotaShare>(&changed)) place(catalog.quota_shares, *share);
  if (const auto* resource = std::get_if<ConsumableResource>(&changed))
    place(catalog.resources, *resource);
}

Duration decay_of(const Catalog& catalog, const JobKey& queue) {
  if (queue.name.empty()) return kDecayOfOthers;
  const JobQueue* found = catalog.queue(queue);
  const SchedulingPolicy* policy = found ? catalog.policy_of(*found) : nullptr;
  return std::chrono::seconds(policy ? policy->decay() : kDecaySecondsDefault);
}

Result<void> check_fits_queue(const Catalog& catalog, const JobQueue& queue, const JobSpec& spec) {
  const std::string& name = queue.key.name;
  const QueueOptions& wanted = *spec.queue;
  if (!queue.enabled)
    return invalid("the job queue " + name + " is disabled and does not accept jobs");
  if (spec.contract == Contract::training && !queue.service)
    return invalid("the job queue " + name +
                   " is not of the type SAGEMAKER_TRAINING and does not accept service jobs");
  if (spec.contract == Contract::plain && queue.service)
    return invalid("the job queue " + name +
                   " is of the type SAGEMAKER_TRAINING and accepts service jobs only");
  const SchedulingPolicy* policy = catalog.policy_of(queue);
  const bool fair = policy && policy->kind == SchedulingPolicy::Kind::fair_share;
  const bool quotas = policy && policy->kind == SchedulingPolicy::Kind::quota_shares;
  if (fair && wanted.share.empty())
    return invalid("shareIdentifier is required: the job queue " + name +
                   " has a fair-share scheduling policy");
  if (!fair && !wanted.share.empty())
    return invalid("shareIdentifier is for job queues with a fair-share scheduling policy, and " +
                   name + " has none");
  if (quotas && wanted.quota_share.empty())
    return invalid("quotaShareName is required: the job queue " + name + " has quota shares");
  if (!quotas && !wanted.quota_share.empty())
    return invalid("quotaShareName is for job queues with a quota-share scheduling policy, and " +
                   name + " has none");
  if (quotas) {
    const QuotaShare* share =
        catalog.quota_share({queue.key.region, quota_share_name(name, wanted.quota_share)});
    if (!share) return invalid("the quota share " + wanted.quota_share + " does not exist");
    if (!share->enabled)
      return invalid("the quota share " + wanted.quota_share +
                     " is disabled and does not accept jobs");
  }
  for (const Consumption& each : wanted.consumes)
    if (!catalog.resource({queue.key.region, each.resource}))
      return invalid("the consumable resource " + each.resource + " does not exist");
  return {};
}

std::string_view kind_of(const Resource& changed) { return kKinds[changed.index()]; }

const JobKey& key_of(const Resource& changed) {
  return std::visit([](const auto& each) -> const JobKey& { return each.key; }, changed);
}

namespace {

constexpr auto kWaitLimit = json_record<WaitLimit>("wait_limit", [](auto& side, auto& limit) {
  side("seconds_max", limit.seconds_max);
  side("terminate", limit.terminate);
  side("reason", limit.reason);
});

constexpr auto kEnvironment =
    json_record<ComputeEnvironment>("compute_environment", [](auto& side, auto& environment) {
      side("key", environment.key, job_key_from_json);
      side("enabled", environment.enabled);
      side("cpus_max", environment.cpus_max);
      side("cpus_min", environment.cpus_min);
      side("cpus_desired", environment.cpus_desired);
      side("instance_types", environment.instance_types);
      side("spot", environment.spot);
      side("request", environment.request);
    });

constexpr auto kQueue = json_record<JobQueue>("job_queue", [](auto& side, auto& queue) {
  side("key", queue.key, job_key_from_json);
  side("enabled", queue.enabled);
  side("priority", queue.priority);
  side("environments", queue.environments);
  side.if_set("service", queue.service);
  side.if_set("policy", queue.policy);
  side.if_set("wait_limits", queue.wait_limits, kWaitLimit);
  side("request", queue.request);
});

constexpr auto kDefinition =
    json_record<JobDefinition>("job_definition", [](auto& side, auto& definition) {
      side("key", definition.key, job_key_from_json);
      side("revision", definition.revision);
      side("active", definition.active);
      side("request", definition.request);
    });

Json to_json(const ComputeEnvironment& environment) { return kEnvironment.write(environment); }
Json to_json(const JobQueue& queue) { return kQueue.write(queue); }
Json to_json(const JobDefinition& definition) { return kDefinition.write(definition); }
Result<ComputeEnvironment> environment_from_json(const Json& json) {
  return kEnvironment.read(json);
}
Result<JobQueue> queue_from_json(const Json& json) { return kQueue.read(json); }
Result<JobDefinition> definition_from_json(const Json& json) { return kDefinition.read(json); }

template <class Kind, Result<Kind> (*read)(const Json&)>
Result<Resource> read_as(const Json& json) {
  return Resource(TRY(read(json)));
}

}  // namespace

Json to_json(const Resource& changed) {
  return std::visit([](const auto& each) { return to_json(each); }, changed);
}

Result<Resource> resource_from_json(std::string_view kind, const Json& json) {
  static constexpr Result<Resource> (*kReaders[])(const Json&) = {
      read_as<ComputeEnvironment, environment_from_json>,
      read_as<JobQueue, queue_from_json>,
      read_as<JobDefinition, definition_from_json>,
      read_as<SchedulingPolicy, policy_from_json>,
      read_as<ServiceEnvironment, service_environment_from_json>,
      read_as<QuotaShare, quota_share_from_json>,
      read_as<ConsumableResource, consumable_from_json>};  // in the order of kKinds
  static_assert(std::size(kReaders) == std::size(kKinds));
  for (size_t i = 0; i < std::size(kKinds); ++i)
    if (kKinds[i] == kind) return kReaders[i](json);
  return invalid("unknown kind of Batch resource '" + shorten(kind, 40) + "'");
}

}  // namespace trainyard::batch
