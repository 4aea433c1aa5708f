// Implements the operations on delivery destinations: buckets, log groups and webhooks to which
// deliveries send logs.
#include <algorithm>

#include "base/json.hpp"
#include "log_routing/deliveries.hpp"
#include "log_routing/router.hpp"
#include "logs/common.hpp"
#include "logs/delivery_texts.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;
using log_routing::Deliveries;

aws::DeliveryDestination to_shape(const Context& context, const std::string& name,
                                  const log_routing::DeliveryDestination& destination) {
  aws::DeliveryDestination out{
      .name = name,
      .arn = arn_of(context, "delivery-destination", name),
      .delivery_destination_type = delivery_type_text(destination.type),
      .delivery_destination_configuration = aws::DeliveryDestinationConfiguration{
          .destination_resource_arn = destination.resource_arn}};
  if (destination.format) out.output_format = delivery_format_text(*destination.format);
  if (!destination.tags.empty()) out.tags = destination.tags;
  return out;
}

Outcome<aws::PutDeliveryDestinationResponse> put_destination(
    Deliveries& deliveries, const Context& context, const aws::PutDeliveryDestinationRequest& in) {
  if (!in.delivery_destination_configuration)
    return validation_exception(
        "deliveryDestinationConfiguration must be specified: a bucket, a log group or a Firehose "
        "stream. Traces (XRAY) are not supported.");
  log_routing::DeliveryDestination wanted{
      .resource_arn = *in.delivery_destination_configuration->destination_resource_arn,
      .tags = in.tags.value_or(std::map<std::string, std::string>{})};
  if (in.output_format) {
    wanted.format = delivery_format_of(*in.output_format);
    if (!wanted.format)
      return validation_exception("outputFormat " + *in.output_format +
                                  " is not supported: choose json, plain or raw.");
  }
  auto& catalogue = deliveries.catalogue();
  const auto type = TRY_DELIVERY(catalogue.type_of(wanted.resource_arn));
  if (in.delivery_destination_type.value_or(delivery_type_text(type)) != delivery_type_text(type))
    return validation_exception("deliveryDestinationType " + *in.delivery_destination_type +
                                " does not fit " + wanted.resource_arn + ".");
  const auto stored =
      TRY_DELIVERY(catalogue.put_destination(context.region, *in.name, std::move(wanted)));
  TRY_DELIVERY(deliveries.reload());
  return aws::PutDeliveryDestinationResponse{.delivery_destination =
                                                 to_shape(context, *in.name, stored)};
}

Outcome<aws::DescribeDeliveryDestinationsResponse> describe(
    Deliveries& deliveries, const Context& context,
    const aws::DescribeDeliveryDestinationsRequest& in) {
  aws::DescribeDeliveryDestinationsResponse out;
  out.delivery_destinations.emplace();
  for (const auto& [name, destination] :
       TRY_DELIVERY(deliveries.catalogue().destinations(context.region)))
    if (!in.names || std::ranges::find(*in.names, name) != in.names->end())
      out.delivery_destinations->push_back(to_shape(context, name, destination));
  out.next_token = TRY(cut_delivery_page(
      *out.delivery_destinations, size_t(in.limit.value_or(kListDefault)), in.next_token,
      [](const aws::DeliveryDestination& each) { return *each.name; }));
  return out;
}

Outcome<aws::PutDeliveryDestinationPolicyResponse> put_policy(
    Deliveries& deliveries, const Context& context,
    const aws::PutDeliveryDestinationPolicyRequest& in) {
  const std::string& policy = *in.delivery_destination_policy;
  if (!parse_json(policy)) return validation_exception("The policy is not valid JSON.");
  TRY_DELIVERY(
      deliveries.catalogue().set_policy(context.region, *in.delivery_destination_name, policy));
  return aws::PutDeliveryDestinationPolicyResponse{
      .policy = aws::Policy{.delivery_destination_policy = policy}};
}

Outcome<aws::GetDeliveryDestinationPolicyResponse> get_policy(
    Deliveries& deliveries, const Context& context,
    const aws::GetDeliveryDestinationPolicyRequest& in) {
  const auto found = TRY_DELIVERY(
      deliveries.catalogue().destination(context.region, *in.delivery_destination_name));
  aws::GetDeliveryDestinationPolicyResponse out;
  out.policy.emplace();
  if (!found.policy.empty()) out.policy->delivery_destination_policy = found.policy;
  return out;
}

}  // namespace

void add_delivery_destinations(OperationTable& table, const Services& services) {
  if (!services.log_router || !services.log_router->deliveries()) return;
  Deliveries& all = *services.log_router->deliveries();
  table.add<aws::PutDeliveryDestination>(
      [&all](const Context& context, const auto& in) { return put_destination(all, context, in); });
  table.add<aws::GetDeliveryDestination>(
      [&all](const Context& context, const aws::GetDeliveryDestinationRequest& in)
          -> Outcome<aws::GetDeliveryDestinationResponse> {
        const auto found = TRY_DELIVERY(all.catalogue().destination(context.region, *in.name));
        return aws::GetDeliveryDestinationResponse{.delivery_destination =
                                                       to_shape(context, *in.name, found)};
      });
  table.add<aws::DescribeDeliveryDestinations>(
      [&all](const Context& context, const auto& in) { return describe(all, context, in); });
  table.add<aws::DeleteDeliveryDestination>(
      [&all](const Context& context,
             const aws::DeleteDeliveryDestinationRequest& in) -> Outcome<aws::Nothing> {
        TRY_DELIVERY(all.catalogue().remove_destination(context.region, *in.name));
        return aws::Nothing{};
      });
  table.add<aws::PutDeliveryDestinationPolicy>(
      [&all](const Context& context, const auto& in) { return put_policy(all, context, in); });
  table.add<aws::GetDeliveryDestinationPolicy>(
      [&all](const Context& context, const auto& in) { return get_policy(all, context, in); });
  table.add<aws::DeleteDeliveryDestinationPolicy>(
      [&all](const Context& context,
             const aws::DeleteDeliveryDestinationPolicyRequest& in) -> Outcome<aws::Nothing> {
        TRY_DELIVERY(all.catalogue().set_policy(context.region, *in.delivery_destination_name, ""));
        return aws::Nothing{};
      });
}

}  // namespace trainyard::api::logs
