#include "log_routing/delivery_records.hpp"

#include "base/enum_table.hpp"
#include "base/json.hpp"
#include "base/json_record.hpp"

namespace trainyard::log_routing {
namespace {

constexpr EnumTable<DeliveryType> kTypes{"delivery type",
                                         {{DeliveryType::s3, "s3"},
                                          {DeliveryType::log_group, "log group"},
                                          {DeliveryType::webhook, "webhook"}}};

constexpr EnumTable<DeliveryFormat> kFormats{"delivery format",
                                             {{DeliveryFormat::plain, "plain"},
                                              {DeliveryFormat::json, "json"},
                                              {DeliveryFormat::raw, "raw"}}};

constexpr auto kSource = json_record<DeliverySource>("delivery source", [](auto& side, auto& all) {
  side("resource_arn", all.resource_arn);
  side("log_type", all.log_type);
  side.if_set("tags", all.tags);
});

constexpr auto kDestination =
    json_record<DeliveryDestination>("delivery destination", [](auto& side, auto& all) {
      side("type", all.type, kTypes);
      side("resource_arn", all.resource_arn);
      side.if_set("format", all.format, kFormats);
      side.if_set("policy", all.policy);
      side.if_set("tags", all.tags);
    });

constexpr auto kDelivery = json_record<LogDelivery>("delivery", [](auto& side, auto& all) {
  side("source", all.source);
  side("destination", all.destination);
  side.if_set("fields", all.options.fields);
  side.if_set("delimiter", all.options.delimiter);
  side.if_set("suffix", all.options.suffix);
  side.if_set("hive_path", all.options.hive_path);
  side.if_set("owner", all.owner);
  side.if_set("tags", all.tags);
  side("created", all.created);
});

}  // namespace

std::string DeliverySource::text() const { return dump(kSource.write(*this)); }
Result<DeliverySource> DeliverySource::from(std::string_view text) {
  return kSource.read(TRY(parse_json(text)));
}

std::string DeliveryDestination::text() const { return dump(kDestination.write(*this)); }
Result<DeliveryDestination> DeliveryDestination::from(std::string_view text) {
  return kDestination.read(TRY(parse_json(text)));
}

std::string LogDelivery::text() const { return dump(kDelivery.write(*this)); }
Result<LogDelivery> LogDelivery::from(std::string_view text) {
  return kDelivery.read(TRY(parse_json(text)));
}

}  // namespace trainyard::log_routing
