// Implements the operations on deliveries: pairs of a delivery source and a delivery destination.
#include "log_routing/deliveries.hpp"

#include <algorithm>

#include "log_routing/router.hpp"
#include "logs/common.hpp"
#include "logs/delivery_texts.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;
using log_routing::Deliveries;
using log_routing::DeliveryFormat;
using log_routing::DeliveryType;

constexpr std::pair<DeliveryType, const char*> kTypes[] = {
    {DeliveryType::s3, "S3"}, {DeliveryType::log_group, "CWL"}, {DeliveryType::webhook, "FH"}};
constexpr std::pair<DeliveryFormat, const char*> kFormats[] = {
    {DeliveryFormat::plain, "plain"}, {DeliveryFormat::json, "json"}, {DeliveryFormat::raw, "raw"}};

Outcome<aws::Delivery> to_shape(Deliveries& deliveries, const Context& context,
                                const std::string& id, const log_routing::LogDelivery& delivery) {
  const auto destination =
      TRY_DELIVERY(deliveries.catalogue().destination(context.region, delivery.destination));
  const auto& options = delivery.options;
  aws::Delivery out{
      .id = id,
      .arn = arn_of(context, "delivery", id),
      .delivery_source_name = delivery.source,
      .delivery_destination_arn = arn_of(context, "delivery-destination", delivery.destination),
      .delivery_destination_type = delivery_type_text(destination.type)};
  if (!options.fields.empty()) out.record_fields = options.fields;
  if (!options.delimiter.empty()) out.field_delimiter = options.delimiter;
  if (destination.type == DeliveryType::s3) {
    out.s3_delivery_configuration.emplace();
    if (!options.suffix.empty()) out.s3_delivery_configuration->suffix_path = options.suffix;
    out.s3_delivery_configuration->enable_hive_compatible_path = options.hive_path;
  }
  if (!delivery.tags.empty()) out.tags = delivery.tags;
  return out;
}

// Sets the options that are present in a request.
template <class Request>
void set_options(const Request& in, log_routing::DeliveryOptions& options) {
  if (in.record_fields) options.fields = *in.record_fields;
  if (in.field_delimiter) options.delimiter = *in.field_delimiter;
  if (!in.s3_delivery_configuration) return;
  const aws::S3DeliveryConfiguration& s3 = *in.s3_delivery_configuration;
  if (s3.suffix_path) options.suffix = *s3.suffix_path;
  if (s3.enable_hive_compatible_path) options.hive_path = *s3.enable_hive_compatible_path;
}

Outcome<aws::CreateDeliveryResponse> create(Deliveries& deliveries, const Context& context,
                                            const aws::CreateDeliveryRequest& in) {
  const auto destination =
      name_in_arn(context, "delivery-destination", *in.delivery_destination_arn);
  if (!destination)
    return resource_not_found("Requested Delivery Destination does not exist in this account.");
  log_routing::LogDelivery delivery{.source = *in.delivery_source_name,
                                    .destination = *destination,
                                    .owner = context.principal.name,
                                    .tags = in.tags.value_or(std::map<std::string, std::string>{}),
                                    .created = context.now};
  set_options(in, delivery.options);
  auto& catalogue = deliveries.catalogue();
  const std::string id = TRY_DELIVERY(catalogue.create(context.region, std::move(delivery)));
  TRY_DELIVERY(deliveries.reload());
  const auto stored = TRY_DELIVERY(catalogue.delivery(context.region, id));
  auto out = TRY(to_shape(deliveries, context, id, stored));
  return aws::CreateDeliveryResponse{.delivery = std::move(out)};
}

Outcome<aws::DescribeDeliveriesResponse> describe(Deliveries& deliveries, const Context& context,
                                                  const aws::DescribeDeliveriesRequest& in) {
  aws::DescribeDeliveriesResponse out;
  out.deliveries.emplace();
  for (const auto& [id, delivery] : TRY_DELIVERY(deliveries.catalogue().deliveries(context.region)))
    if (!in.delivery_source_names ||
        std::ranges::find(*in.delivery_source_names, delivery.source) !=
            in.delivery_source_names->end())
      out.deliveries->push_back(TRY(to_shape(deliveries, context, id, delivery)));
  out.next_token =
      TRY(cut_delivery_page(*out.deliveries, size_t(in.limit.value_or(kListDefault)), in.next_token,
                            [](const aws::Delivery& each) { return *each.id; }));
  return out;
}

}  // namespace

const char* delivery_type_text(DeliveryType type) {
  return std::ranges::find(kTypes, type, [](const auto& each) { return each.first; })->second;
}

const char* delivery_format_text(DeliveryFormat format) {
  return std::ranges::find(kFormats, format, [](const auto& each) { return each.first; })->second;
}

std::optional<DeliveryFormat> delivery_format_of(std::string_view text) {
  for (const auto& [format, name] : kFormats)
    if (text == name) return format;
  return {};
}

void add_deliveries(OperationTable& table, const Services& services) {
  if (!services.log_router || !services.log_router->deliveries()) return;
  Deliveries& all = *services.log_router->deliveries();
  table.add<aws::CreateDelivery>(
      [&all](const Context& context, const auto& in) { return create(all, context, in); });
  table.add<aws::GetDelivery>(
      [&all](const Context& context,
             const aws::GetDeliveryRequest& in) -> Outcome<aws::GetDeliveryResponse> {
        const auto found = TRY_DELIVERY(all.catalogue().delivery(context.region, *in.id));
        auto out = TRY(to_shape(all, context, *in.id, found));
        return aws::GetDeliveryResponse{.delivery = std::move(out)};
      });
  table.add<aws::DescribeDeliveries>(
      [&all](const Context& context, const auto& in) { return describe(all, context, in); });
  table.add<aws::UpdateDeliveryConfiguration>(
      [&all](const Context& context, const aws::UpdateDeliveryConfigurationRequest& in)
          -> Outcome<aws::UpdateDeliveryConfigurationResponse> {
        TRY_DELIVERY(all.catalogue().update(
            context.region, *in.id,
            [&](log_routing::DeliveryOptions& options) { set_options(in, options); }));
        TRY_DELIVERY(all.reload());
        return aws::UpdateDeliveryConfigurationResponse{};
      });
  table.add<aws::DeleteDelivery>(
      [&all](const Context& context,
             const aws::DeleteDeliveryRequest& in) -> Outcome<aws::Nothing> {
        TRY_DELIVERY(all.remove(context.region, *in.id));
        return aws::Nothing{};
      });
}

}  // namespace trainyard::api::logs
