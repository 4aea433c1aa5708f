// Implements the operations on regions, their availability zones, and the attributes of the
// account.
#include <set>

#include "ec2/common.hpp"

namespace trainyard::api::ec2 {
namespace {

constexpr std::string_view kOptIn = "opt-in-not-required";

// Rejects a request that names items outside the list: "Invalid region: [mars-1]".
Outcome<Done> check_named(const Ids& wanted, const Texts& known, std::string_view resource) {
  std::string unknown;
  for (const std::string& each : wanted.value_or(Texts()))
    if (std::ranges::find(known, each) == known.end())
      unknown.append(unknown.empty() ? "" : ", ").append(shorten(each, 100));
  if (unknown.empty()) return Done{};
  return invalid_parameter_value("Invalid " + std::string(resource) + ": [" +
                                 shorten(unknown, 1'024) + "]");
}

using Zone = aws::AvailabilityZone;
constexpr Attribute<Zone> kZoneAttributes[] = {
    {"zone-name", [](const Zone& zone) { return texts(zone.zone_name); }},
    {"zone-id", [](const Zone& zone) { return texts(zone.zone_id); }},
    {"zone-type", [](const Zone& zone) { return texts(zone.zone_type); }},
    {"region-name", [](const Zone& zone) { return texts(zone.region_name); }},
    {"group-name", [](const Zone& zone) { return texts(zone.group_name); }},
    {"opt-in-status", [](const Zone& zone) { return texts(zone.opt_in_status); }},
    {"state", [](const Zone& zone) { return texts(zone.state); }},
};

Zone shown_zone(const std::string& region, const std::string& name) {
  Zone zone;
  zone.opt_in_status = kOptIn;
  zone.messages.emplace();
  zone.region_name = region;
  zone.zone_name = name;
  zone.zone_id = zone_id(region, name);
  zone.group_name = region + "-zg-1";
  zone.network_border_group = region;
  zone.zone_type = "availability-zone";
  zone.state = "available";
  return zone;
}

Outcome<aws::DescribeAvailabilityZonesResult> describe_availability_zones(
    const Networks&, const Context& context, const aws::DescribeAvailabilityZonesRequest& in) {
  Texts names = zones_of(context.region), ids;
  for (const std::string& name : names) ids.push_back(zone_id(context.region, name));
  TRY(check_named(in.zone_names, names, "availability zone"));
  TRY(check_named(in.zone_ids, ids, "availability zone ID"));
  std::vector<Zone> zones;
  for (const std::string& name : names)
    if (is_wanted(in.zone_names, name) && is_wanted(in.zone_ids, zone_id(context.region, name)))
      zones.push_back(shown_zone(context.region, name));
  TRY(keep_matching(in.filters, kZoneAttributes, zones));
  return aws::DescribeAvailabilityZonesResult{.availability_zones = std::move(zones)};
}

constexpr Attribute<aws::Region> kRegionAttributes[] = {
    {"region-name", [](const aws::Region& region) { return texts(region.region_name); }},
    {"endpoint", [](const aws::Region& region) { return texts(region.endpoint); }},
    {"opt-in-status", [](const aws::Region& region) { return texts(region.opt_in_status); }},
};

// Returns the regions of this server and of the servers to which it forwards requests.
Texts regions_of(const Settings& settings, const Context& context) {
  std::set<std::string> names(settings.regions.begin(), settings.regions.end());
  for (const auto& [name, remote] : settings.remote_regions) names.insert(name);
  names.insert(context.region);
  return {names.begin(), names.end()};
}

Outcome<aws::DescribeRegionsResult> describe_regions(const Settings& settings,
                                                     const Context& context,
                                                     const aws::DescribeRegionsRequest& in) {
  const Texts names = regions_of(settings, context);
  TRY(check_named(in.region_names, names, "region"));
  std::vector<aws::Region> regions;
  for (const std::string& name : names) {
    if (!is_wanted(in.region_names, name)) continue;
    aws::Region region;
    region.opt_in_status = kOptIn;
    region.region_name = name;
    region.endpoint = "ec2." + name + ".amazonaws.com";
    regions.push_back(std::move(region));
  }
  TRY(keep_matching(in.filters, kRegionAttributes, regions));
  return aws::DescribeRegionsResult{.regions = std::move(regions)};
}

// Returns the attributes of the account. Its quotas are in Service Quotas.
Outcome<aws::DescribeAccountAttributesResult> describe_account_attributes(
    const Networks& networks, const Context&, const aws::DescribeAccountAttributesRequest& in) {
  const Vpc* vpc = networks.default_vpc();
  aws::DescribeAccountAttributesResult out;
  out.account_attributes.emplace();
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"supported-platforms", "VPC"},
        {"default-vpc", vpc ? vpc->id : "none"}}) {
    if (!is_wanted(in.attribute_names, name)) continue;
    aws::AccountAttribute attribute;
    attribute.attribute_name = name;
    attribute.attribute_values = {{.attribute_value = value}};
    out.account_attributes->push_back(std::move(attribute));
  }
  return out;
}

}  // namespace

void add_account(OperationTable& table, const Store& store, const Settings& settings) {
  add_read<aws::DescribeAvailabilityZones>(table, store, describe_availability_zones);
  add_read<aws::DescribeRegions>(
      table, store,
      [&settings](const Networks&, const Context& context, const aws::DescribeRegionsRequest& in) {
        return describe_regions(settings, context, in);
      });
  add_read<aws::DescribeAccountAttributes>(table, store, describe_account_attributes);
}

}  // namespace trainyard::api::ec2
