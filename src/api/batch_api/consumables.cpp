// Implements the operations on consumable resources, which jobs need in addition to machines, and
// the list of jobs that need one.
#include <algorithm>

#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch/status.hpp"
#include "batch_api/requests.hpp"
#include "control/consumption.hpp"
#include "domain/limits.hpp"
#include "domain/stage.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;
using domain::JobKey;
using trainyard::batch::ConsumableResource;
using trainyard::batch::ResourceChange;

constexpr std::string_view kReplenishable = "REPLENISHABLE", kUsedUp = "NON_REPLENISHABLE";

std::string type_of(const ConsumableResource& resource) {
  return std::string(resource.replenishable ? kReplenishable : kUsedUp);
}

int64_t in_use(const control::Consumed& consumed, const ConsumableResource& resource) {
  const auto found = consumed.find(resource.key);
  return !resource.replenishable || found == consumed.end() ? 0 : found->second;
}

void create_resource(const Services& services, const Context& context,
                     const batch::CreateConsumableResourceRequest& request,
                     const Answer<batch::CreateConsumableResourceResponse>& answer) {
  const auto made = [&]() -> Outcome<ConsumableResource> {
    TRY(check_batch_name(*request.consumable_resource_name, "consumableResourceName"));
    const std::string type = request.resource_type.value_or(std::string(kReplenishable));
    if (type != kReplenishable && type != kUsedUp)
      return client_exception("resourceType must be REPLENISHABLE or NON_REPLENISHABLE, not '" +
                              shorten(type, 60) + "'");
    ConsumableResource resource;
    resource.key = {context.region, *request.consumable_resource_name};
    resource.replenishable = type == kReplenishable;
    resource.total = request.total_quantity.value_or(0);
    if (resource.total < 0 || resource.total > domain::kCountedMax)
      return client_exception("totalQuantity must be between 0 and " +
                              std::to_string(domain::kCountedMax));
    resource.created = context.now;
    return resource;
  };
  batch::CreateConsumableResourceResponse out;
  out.consumable_resource_name = request.consumable_resource_name;
  change_named_resource(services, context, ResourceChange::create, catalog::kResourceArn, made(),
                        request.tags, std::move(out),
                        &batch::CreateConsumableResourceResponse::consumable_resource_arn, answer);
}

void update_resource(const Services& services, const Context& context,
                     const batch::UpdateConsumableResourceRequest& request,
                     Answer<batch::UpdateConsumableResourceResponse> answer) {
  const JobKey key =
      batch_resource_key(context, *request.consumable_resource, catalog::kResourceArn);
  const auto made = [&]() -> Outcome<ConsumableResource> {
    const auto stored = services.control.batch_catalog();
    const ConsumableResource* present = stored->resource(key);
    if (!present) return no_such_resource("consumable resource", key.name);
    ConsumableResource change = *present;
    const std::string operation = request.operation.value_or("SET");
    const int64_t quantity = request.quantity.value_or(0);
    if (quantity < 0 || quantity > domain::kCountedMax)
      return client_exception("quantity must be between 0 and " +
                              std::to_string(domain::kCountedMax));
    if (operation == "SET")
      change.set = quantity;
    else if (operation == "ADD" || operation == "REMOVE")
      change.add = operation == "ADD" ? quantity : -quantity;
    else
      return client_exception("operation must be SET, ADD or REMOVE, not '" +
                              shorten(operation, 60) + "'");
    change.token = request.client_token.value_or("");
    return change;
  };
  auto change = made();
  if (!change) return answer(std::move(change).error());
  const std::string arn = batch_resource_arn(context, catalog::kResourceArn, key.name);
  change_batch_resource<batch::UpdateConsumableResourceResponse>(
      services, ResourceChange::update, *std::move(change), arn, {},
      [key, arn](const catalog::Resource& batch_resource) {
        batch::UpdateConsumableResourceResponse out;
        out.consumable_resource_name = key.name;
        out.consumable_resource_arn = arn;
        out.total_quantity = std::get<ConsumableResource>(batch_resource).total;
        return out;
      },
      std::move(answer));
}

Outcome<batch::DescribeConsumableResourceResponse> describe_resource(
    const Services& services, const Context& context,
    const batch::DescribeConsumableResourceRequest& request) {
  const JobKey key =
      batch_resource_key(context, *request.consumable_resource, catalog::kResourceArn);
  const auto stored = services.control.batch_catalog();
  const ConsumableResource* resource = stored->resource(key);
  if (!resource) return no_such_resource("consumable resource", key.name);
  const int64_t used = in_use(control::consumed_by(services.control.live_jobs()), *resource);
  batch::DescribeConsumableResourceResponse out;
  out.consumable_resource_name = key.name;
  out.consumable_resource_arn = batch_resource_arn(context, catalog::kResourceArn, key.name);
  out.total_quantity = resource->total;
  out.in_use_quantity = used;
  out.available_quantity = std::max<int64_t>(0, resource->total - used);
  out.resource_type = type_of(*resource);
  out.created_at = to_milliseconds(resource->created);
  out.tags = batch_tags_out(TRY(services.control.tags(*out.consumable_resource_arn)));
  return out;
}

// The values of each filter by its name. Errors: an unknown name, or a repeated one.
Outcome<std::map<std::string, std::vector<std::string>>> filters_of(
    const std::optional<std::vector<batch::KeyValuesPair>>& filters,
    const std::vector<std::string>& known) {
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& filter : filters.value_or(std::vector<batch::KeyValuesPair>())) {
    const std::string name = filter.name.value_or("");
    if (std::ranges::find(known, name) == known.end())
      return client_exception("the filter " + shorten(name, 60) + " is not one of " +
                              join(known, ", "));
    auto values = filter.values.value_or(std::vector<std::string>());
    if (values.empty()) return client_exception("the filter " + name + " needs a value");
    if (!out.emplace(name, std::move(values)).second)
      return client_exception("the filter " + name + " is given twice");
  }
  return out;
}

Outcome<batch::ListConsumableResourcesResponse> list_resources(
    const Services& services, const Context& context,
    const batch::ListConsumableResourcesRequest& request) {
  const auto filters = TRY(filters_of(request.filters, {"CONSUMABLE_RESOURCE_NAME"}));
  const auto patterns =
      filters.empty() ? std::vector<std::string>() : filters.at("CONSUMABLE_RESOURCE_NAME");
  const auto results_max = TRY(results_max_of(request.max_results));
  const auto stored = services.control.batch_catalog();
  const auto consumed = control::consumed_by(services.control.live_jobs());
  batch::ListConsumableResourcesResponse out;
  out.consumable_resources = TRY((page_of<batch::ConsumableResourceSummary, ConsumableResource>(
      context, stored->resources,
      [&](const ConsumableResource& resource) { return any_matches(patterns, resource.key.name); },
      results_max, request.next_token.value_or(""), out.next_token,
      [&](const ConsumableResource& resource) -> Outcome<batch::ConsumableResourceSummary> {
        batch::ConsumableResourceSummary summary;
        summary.consumable_resource_arn =
            batch_resource_arn(context, catalog::kResourceArn, resource.key.name);
        summary.consumable_resource_name = resource.key.name;
        summary.total_quantity = resource.total;
        summary.in_use_quantity = in_use(consumed, resource);
        summary.resource_type = type_of(resource);
        return summary;
      })));
  return out;
}

batch::ListJobsByConsumableResourceSummary summary_of_consumer(const Context& context,
                                                               const domain::Job& job,
                                                               const std::string& resource) {
  batch::ListJobsByConsumableResourceSummary summary;
  summary.job_arn = control::job_arn(job);
  summary.job_queue_arn = batch_resource_arn(context, catalog::kQueueArn, job.spec.queue->name);
  summary.job_name = job.spec.display_name;
  summary.job_definition_arn = job.spec.definition;
  if (!job.spec.queue->share.empty()) summary.share_identifier = job.spec.queue->share;
  summary.job_status = catalog::status_name(domain::stage_of(job));
  if (auto reason = catalog::status_reason(job); !reason.empty())
    summary.status_reason = std::move(reason);
  if (job.attempt() && job.attempt()->training_started)
    summary.started_at = to_milliseconds(*job.attempt()->training_started);
  summary.created_at = to_milliseconds(job.created);
  summary.consumable_resource_properties.emplace().consumable_resource_list.emplace();
  for (const domain::Consumption& each : job.spec.queue->consumes) {
    batch::ConsumableResourceRequirement requirement;
    requirement.consumable_resource =
        batch_resource_arn(context, catalog::kResourceArn, each.resource);
    requirement.quantity = each.quantity;
    summary.consumable_resource_properties->consumable_resource_list->push_back(
        std::move(requirement));
    if (each.resource == resource) summary.quantity = each.quantity;
  }
  return summary;
}

Outcome<batch::ListJobsByConsumableResourceResponse> list_consumers(
    const Services& services, const Context& context,
    const batch::ListJobsByConsumableResourceRequest& request) {
  const JobKey key =
      batch_resource_key(context, *request.consumable_resource, catalog::kResourceArn);
  if (!services.control.batch_catalog()->resource(key))
    return no_such_resource("consumable resource", key.name);
  const auto filters = TRY(filters_of(request.filters, {"JOB_STATUS", "JOB_NAME"}));
  const auto values = [&](const char* name) {
    const auto found = filters.find(name);
    return found == filters.end() ? std::vector<std::string>() : found->second;
  };
  const auto statuses = values("JOB_STATUS"), names = values("JOB_NAME");
  ledger::JobQuery query;
  query.region = context.region;
  query.token = request.next_token.value_or("");
  for (int i = 0; i <= int(domain::Stage::failed); ++i)
    if (std::ranges::find(statuses, catalog::status_name(domain::Stage(i))) != statuses.end())
      for (const domain::JobState state : domain::states_of(domain::Stage(i)))
        if (std::ranges::find(query.states, state) == query.states.end())
          query.states.push_back(state);
  batch::ListJobsByConsumableResourceResponse out;
  out.jobs.emplace();
  // SUBMITTED: no stored job has this status
  if (!statuses.empty() && query.states.empty()) return out;
  const auto wanted = [&](const domain::Job& job) {
    return job.spec.queue &&
           std::ranges::find(job.spec.queue->consumes, key.name, &domain::Consumption::resource) !=
               job.spec.queue->consumes.end() &&
           any_matches(names, job.spec.display_name) &&
           (statuses.empty() ||
            std::ranges::find(statuses, catalog::status_name(domain::stage_of(job))) !=
                statuses.end());
  };
  const auto results_max = size_t(TRY(results_max_of(request.max_results)));
  for (const auto& job : TRY(scan_jobs(services, context, query, results_max, wanted)))
    out.jobs->push_back(summary_of_consumer(context, *job, key.name));
  if (!query.token.empty()) out.next_token = query.token;
  return out;
}

}  // namespace

void add_consumables(OperationTable& table, const Settings&, const Services& services) {
  table.add_later<batch::CreateConsumableResource>(
      [&](const Context& context, batch::CreateConsumableResourceRequest request, auto answer) {
        create_resource(services, context, request, answer);
      });
  table.add_later<batch::UpdateConsumableResource>(
      [&](const Context& context, batch::UpdateConsumableResourceRequest request, auto answer) {
        update_resource(services, context, request, std::move(answer));
      });
  table.add_later<batch::DeleteConsumableResource>(
      [&](const Context& context, batch::DeleteConsumableResourceRequest request, auto answer) {
        const JobKey key =
            batch_resource_key(context, *request.consumable_resource, catalog::kResourceArn);
        remove_batch_resource<ConsumableResource>(
            services, key, services.control.batch_catalog()->resource(key), answer);
      });
  table.add<batch::DescribeConsumableResource>(
      [&](const Context& context, const batch::DescribeConsumableResourceRequest& request) {
        return describe_resource(services, context, request);
      });
  table.add<batch::ListConsumableResources>(
      [&](const Context& context, const batch::ListConsumableResourcesRequest& request) {
        return list_resources(services, context, request);
      });
  table.add<batch::ListJobsByConsumableResource>(
      [&](const Context& context, const batch::ListJobsByConsumableResourceRequest& request) {
        return list_consumers(services, context, request);
      });
}

}  // namespace trainyard::api::batch_api
