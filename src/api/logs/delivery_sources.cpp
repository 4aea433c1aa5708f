// Implements the operations on delivery sources: the resources whose logs deliveries send.
#include <algorithm>

#include "log_routing/deliveries.hpp"
#include "log_routing/router.hpp"
#include "logs/common.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;
using log_routing::Deliveries;
using log_routing::DeliveryCatalogue;

aws::DeliverySource to_shape(const Context& context, const std::string& name,
                             const log_routing::DeliverySource& source) {
  aws::DeliverySource out{.name = name,
                          .arn = arn_of(context, "delivery-source", name),
                          .resource_arns = std::vector{source.resource_arn},
                          .service = DeliveryCatalogue::service_of(source),
                          .log_type = source.log_type,
                          .status = "ACTIVE"};
  if (!source.tags.empty()) out.tags = source.tags;
  return out;
}

Outcome<aws::PutDeliverySourceResponse> put_source(Deliveries& deliveries, const Context& context,
                                                   const aws::PutDeliverySourceRequest& in) {
  if (in.delivery_source_configuration && !in.delivery_source_configuration->empty())
    return validation_exception("deliverySourceConfiguration is not supported.");
  log_routing::DeliverySource source{
      .resource_arn = *in.resource_arn,
      .log_type = *in.log_type,
      .tags = in.tags.value_or(std::map<std::string, std::string>{})};
  TRY_DELIVERY(deliveries.catalogue().put_source(context.region, *in.name, std::move(source)));
  TRY_DELIVERY(deliveries.reload());
  const auto stored = TRY_DELIVERY(deliveries.catalogue().source(context.region, *in.name));
  return aws::PutDeliverySourceResponse{.delivery_source = to_shape(context, *in.name, stored)};
}

Outcome<aws::DescribeDeliverySourcesResponse> describe(
    Deliveries& deliveries, const Context& context, const aws::DescribeDeliverySourcesRequest& in) {
  aws::DescribeDeliverySourcesResponse out;
  out.delivery_sources.emplace();
  for (const auto& [name, source] : TRY_DELIVERY(deliveries.catalogue().sources(context.region)))
    if (!in.resource_arns ||
        std::ranges::find(*in.resource_arns, source.resource_arn) != in.resource_arns->end())
      out.delivery_sources->push_back(to_shape(context, name, source));
  out.next_token = TRY(
      cut_delivery_page(*out.delivery_sources, size_t(in.limit.value_or(kListDefault)),
                        in.next_token, [](const aws::DeliverySource& each) { return *each.name; }));
  return out;
}

}  // namespace

void add_delivery_sources(OperationTable& table, const Services& services) {
  if (!services.log_router || !services.log_router->deliveries()) return;
  Deliveries& deliveries = *services.log_router->deliveries();
  table.add<aws::PutDeliverySource>([&deliveries](const Context& context, const auto& in) {
    return put_source(deliveries, context, in);
  });
  table.add<aws::GetDeliverySource>([&deliveries](const Context& context,
                                                  const aws::GetDeliverySourceRequest& in)
                                        -> Outcome<aws::GetDeliverySourceResponse> {
    const auto found = TRY_DELIVERY(deliveries.catalogue().source(context.region, *in.name));
    return aws::GetDeliverySourceResponse{.delivery_source = to_shape(context, *in.name, found)};
  });
  table.add<aws::DescribeDeliverySources>([&deliveries](const Context& context, const auto& in) {
    return describe(deliveries, context, in);
  });
  table.add<aws::DeleteDeliverySource>(
      [&deliveries](const Context& context,
                    const aws::DeleteDeliverySourceRequest& in) -> Outcome<aws::Nothing> {
        TRY_DELIVERY(deliveries.catalogue().remove_source(context.region, *in.name));
        return aws::Nothing{};
      });
}

}  // namespace trainyard::api::logs
