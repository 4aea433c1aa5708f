// Converts a job's options in its queue: its share, its priority, and the resources that it
// consumes.
#include <algorithm>

#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch/limits.hpp"
#include "batch_api/conversions.hpp"
#include "domain/limits.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;

Outcome<Done> read_consumption(const batch::ConsumableResourceProperties& properties,
                               domain::QueueOptions& queue) {
  const auto list = properties.consumable_resource_list.value_or(
      std::vector<batch::ConsumableResourceRequirement>());
  for (const auto& each : list) {
    domain::Consumption consumption;
    consumption.resource =
        catalog::name_in_arn(each.consumable_resource.value_or(""), catalog::kResourceArn);
    consumption.quantity = each.quantity.value_or(0);
    if (consumption.resource.empty())
      return client_exception(
          "consumableResourceProperties needs the name of a consumableResource");
    if (consumption.quantity < 1 || consumption.quantity > domain::kCountedMax)
      return client_exception(
          "consumableResourceProperties: the quantity of " + shorten(consumption.resource, 128) +
          " must be at least 1 and at most " + std::to_string(domain::kCountedMax));
    if (std::ranges::find(queue.consumes, consumption.resource, &domain::Consumption::resource) !=
        queue.consumes.end())
      return client_exception("consumableResourceProperties names " +
                              shorten(consumption.resource, 128) + " twice");
    queue.consumes.push_back(std::move(consumption));
  }
  if (queue.consumes.size() > catalog::kConsumptionsMax)
    return client_exception("consumableResourceProperties names at most " +
                            std::to_string(catalog::kConsumptionsMax) + " resources");
  return Done{};
}

}  // namespace

Outcome<Done> read_queue_position(const batch::SubmitJobRequest& request,
                                  const batch::JobDefinition& definition,
                                  domain::QueueOptions& queue) {
  if (request.share_identifier)
    TRY(check_share_identifier(*request.share_identifier, "shareIdentifier", false));
  queue.share = request.share_identifier.value_or("");
  queue.priority =
      request.scheduling_priority_override.value_or(definition.scheduling_priority.value_or(0));
  if (queue.priority < 0 || queue.priority > catalog::kSchedulingPriorityMax)
    return client_exception("schedulingPriority must be between 0 and " +
                            std::to_string(catalog::kSchedulingPriorityMax));
  const auto& properties = request.consumable_resource_properties_override
                               ? request.consumable_resource_properties_override
                               : definition.consumable_resource_properties;
  if (properties) TRY(read_consumption(*properties, queue));
  return Done{};
}

std::optional<batch::ConsumableResourceProperties> describe_consumption(
    const domain::QueueOptions& queue, const std::string& region, const std::string& account) {
  if (queue.consumes.empty()) return std::nullopt;
  batch::ConsumableResourceProperties out;
  out.consumable_resource_list.emplace();
  for (const domain::Consumption& each : queue.consumes) {
    batch::ConsumableResourceRequirement requirement;
    requirement.consumable_resource =
        catalog::arn_of(account, region, catalog::kResourceArn, each.resource);
    requirement.quantity = each.quantity;
    out.consumable_resource_list->push_back(std::move(requirement));
  }
  return out;
}

}  // namespace trainyard::api::batch_api
