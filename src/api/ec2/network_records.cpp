#include "ec2/network_records.hpp"

#include "base/complete_record.hpp"
#include "ec2/ip_blocks.hpp"

namespace trainyard::api::ec2 {
namespace {

Result<void> check_block(const std::string& text) {
  TRY(parse_ipv4_block(text));
  return {};
}

constexpr auto kDescribeVpc = [](auto& side, auto& vpc) {
  side("cidr", vpc.cidr);
  side("association", vpc.association);
  side.if_set("default", vpc.is_default);
  side("tenancy", vpc.tenancy);
  side("dns_support", vpc.dns_support);
  side("dns_hostnames", vpc.dns_hostnames);
  side.if_set("usage_metrics", vpc.usage_metrics);
  side.if_set("tags", vpc.tags);
};
constexpr auto kVpc = complete(
    json_record<Vpc>("vpc", kDescribeVpc, [](const Vpc& vpc) { return check_block(vpc.cidr); }));

constexpr auto kDescribeSubnet = [](auto& side, auto& subnet) {
  side("vpc", subnet.vpc);
  side("cidr", subnet.cidr);
  side("zone", subnet.zone);
  side.if_set("default_for_zone", subnet.default_for_zone);
  side.if_set("public_addresses", subnet.public_addresses);
  side.if_set("tags", subnet.tags);
};
constexpr auto kSubnet = complete(
    json_record<Subnet>("subnet", kDescribeSubnet, [](const Subnet& subnet) -> Result<void> {
      if (subnet.zone.empty()) return invalid("a subnet must have an availability zone");
      return check_block(subnet.cidr);
    }));

constexpr auto kRule = complete(json_record<Rule>("rule", [](auto& side, auto& rule) {
  side("id", rule.id);
  side("egress", rule.egress);
  side("protocol", rule.protocol);
  side("from", rule.from);
  side("to", rule.to);
  side.if_set("cidr", rule.cidr);
  side.if_set("cidr6", rule.cidr6);
  side.if_set("group", rule.group);
  side.if_set("description", rule.description);
  side.if_set("tags", rule.tags);
}));

constexpr auto kGroup =
    complete(json_record<SecurityGroup>("security group", [](auto& side, auto& group) {
      side("vpc", group.vpc);
      side("name", group.name);
      side("description", group.description);
      side("rules", group.rules, kRule);
      side.if_set("tags", group.tags);
    }));

constexpr auto kGateway =
    complete(json_record<InternetGateway>("internet gateway", [](auto& side, auto& gateway) {
      side("vpc", gateway.vpc);
      side.if_set("tags", gateway.tags);
    }));

constexpr auto kRoute = complete(json_record<Route>("route", [](auto& side, auto& route) {
  side("destination", route.destination);
  side("gateway", route.gateway);
}));

constexpr auto kAssociation =
    complete(json_record<SubnetAssociation>("association", [](auto& side, auto& association) {
      side("id", association.id);
      side("subnet", association.subnet);
    }));

constexpr auto kRouteTable =
    complete(json_record<RouteTable>("route table", [](auto& side, auto& table) {
      side("vpc", table.vpc);
      side.if_set("main_association", table.main_association);
      side("routes", table.routes, kRoute);
      side("associations", table.associations, kAssociation);
      side.if_set("tags", table.tags);
    }));

template <class T, class Record>
Result<void> read_into(ById<T>& all, const std::string& id, const Record& record,
                       const Json& document) {
  T resource = TRY(record.read(document));
  resource.id = id;
  all[id] = std::move(resource);
  return {};
}

template <class T, class Record>
void compare(std::string_view kind, const std::string& region, const ById<T>& before,
             const ById<T>& after, const Record& record, std::vector<domain::RecordWrite>& writes) {
  const auto key = [&](const std::string& id) {
    return domain::RecordKey(kind, region + "/" + id);
  };
  for (const auto& [id, resource] : before)
    if (!after.contains(id)) writes.push_back({key(id), std::nullopt});
  for (const auto& [id, resource] : after) {
    const auto found = before.find(id);
    if (found == before.end() || found->second != resource)
      writes.push_back({key(id), record.write(resource)});
  }
}

}  // namespace

domain::RecordWrite region_record(const std::string& region) {
  return {{std::string(kRegionRecord), region}, Json::object()};
}

bool has_region(const domain::Records& records, const std::string& region) {
  return records.all.contains({std::string(kRegionRecord), region});
}

Result<void> add_record(Networks& networks, const std::string& region, const domain::RecordKey& key,
                        const Json& document) {
  const auto& [kind, name] = key;
  if (!name.starts_with(region) || name.substr(region.size(), 1) != "/") return {};
  const std::string id = name.substr(region.size() + 1);
  if (kind == kVpcRecord) return read_into(networks.vpcs, id, kVpc, document);
  if (kind == kSubnetRecord) return read_into(networks.subnets, id, kSubnet, document);
  if (kind == kGroupRecord) return read_into(networks.groups, id, kGroup, document);
  if (kind == kGatewayRecord) return read_into(networks.gateways, id, kGateway, document);
  if (kind == kRouteTableRecord) return read_into(networks.route_tables, id, kRouteTable, document);
  return {};
}

void drop_orphans(Networks& networks) {
  const auto drop = [&](auto& all) {
    std::erase_if(all, [&](const auto& each) {
      return !each.second.vpc.empty() && !networks.vpcs.contains(each.second.vpc);
    });
  };
  drop(networks.subnets);
  drop(networks.groups);
  drop(networks.gateways);
  drop(networks.route_tables);
}

std::vector<domain::RecordWrite> difference(const std::string& region, const Networks& before,
                                            const Networks& after) {
  std::vector<domain::RecordWrite> writes;
  compare(kVpcRecord, region, before.vpcs, after.vpcs, kVpc, writes);
  compare(kSubnetRecord, region, before.subnets, after.subnets, kSubnet, writes);
  compare(kGroupRecord, region, before.groups, after.groups, kGroup, writes);
  compare(kGatewayRecord, region, before.gateways, after.gateways, kGateway, writes);
  compare(kRouteTableRecord, region, before.route_tables, after.route_tables, kRouteTable, writes);
  return writes;
}

}  // namespace trainyard::api::ec2
