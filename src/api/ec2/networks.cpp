#include "ec2/networks.hpp"

#include <algorithm>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "ec2/ip_blocks.hpp"

namespace trainyard::api::ec2 {
namespace {

constexpr std::string_view kDefaultVpcCidr = "172.31.0.0/16";
constexpr unsigned kDefaultSubnetBits = 20;
constexpr size_t kIdDigits = 16;  // of a hash, after the "0" with which AWS's ids begin

// "central" -> "c", "southeast" -> "se".
std::string short_direction(std::string_view direction) {
  std::string out;
  for (const std::string_view part : {"north", "south", "east", "west", "central"})
    if (direction.find(part) != std::string_view::npos) out += part.front();
  return out;
}

}  // namespace

const Vpc* Networks::default_vpc() const {
  const auto found =
      std::ranges::find_if(vpcs, [](const auto& each) { return each.second.is_default; });
  return found == vpcs.end() ? nullptr : &found->second;
}

std::vector<std::string> zones_of(const std::string& region) {
  std::vector<std::string> zones;
  for (const std::string_view letter : kZoneLetters) zones.push_back(region + std::string(letter));
  return zones;
}

// us-gov-west-1 -> usgw1: the initials, with two letters of the continent.
std::string zone_id(const std::string& region, const std::string& zone) {
  const auto parts = split(region, '-');
  std::string out(parts.front());
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string direction = short_direction(parts[i]);
    if (!direction.empty())
      out += direction;
    else
      out += i + 1 == parts.size() ? parts[i] : parts[i].substr(0, 1);
  }
  return out + "-az" + std::to_string(zone.back() - 'a' + 1);
}

Rule all_egress(const MakeId& make_id) {
  Rule rule;
  rule.id = make_id("sgr-");
  rule.egress = true;
  rule.cidr = "0.0.0.0/0";
  return rule;
}

Vpc& add_vpc(Networks& networks, const std::string& cidr, const MakeId& make_id) {
  Vpc vpc;
  vpc.id = make_id("vpc-");
  vpc.cidr = cidr;
  vpc.association = make_id("vpc-cidr-assoc-");

  SecurityGroup group;
  group.id = make_id("sg-");
  group.vpc = vpc.id;
  group.name = "default";
  group.description = "default VPC security group";
  Rule peers;
  peers.id = make_id("sgr-");
  peers.group = group.id;
  group.rules = {std::move(peers), all_egress(make_id)};

  RouteTable routes;
  routes.id = make_id("rtb-");
  routes.vpc = vpc.id;
  routes.main_association = make_id("rtbassoc-");

  networks.groups[group.id] = std::move(group);
  networks.route_tables[routes.id] = std::move(routes);
  return networks.vpcs[vpc.id] = std::move(vpc);
}

Vpc& add_default_vpc(Networks& networks, const std::string& region, const MakeId& make_id) {
  Vpc& vpc = add_vpc(networks, std::string(kDefaultVpcCidr), make_id);
  vpc.is_default = true;
  vpc.dns_hostnames = true;
  Ipv4Block block = parse_ipv4_block(kDefaultVpcCidr).value();
  block.prefix_bits = kDefaultSubnetBits;
  for (const std::string& zone : zones_of(region)) {
    Subnet subnet;
    subnet.id = make_id("subnet-");
    subnet.vpc = vpc.id;
    subnet.cidr = to_string(block);
    subnet.zone = zone;
    subnet.default_for_zone = true;
    subnet.public_addresses = true;
    networks.subnets[subnet.id] = std::move(subnet);
    block.first += uint32_t(block.size());
  }
  InternetGateway gateway;
  gateway.id = make_id("igw-");
  gateway.vpc = vpc.id;
  for (auto& [id, table] : networks.route_tables)
    if (table.vpc == vpc.id) table.routes.push_back({"0.0.0.0/0", gateway.id});
  networks.gateways[gateway.id] = std::move(gateway);
  return vpc;
}

Networks default_networks(const std::string& account, const std::string& region) {
  Networks networks;
  int made = 0;
  add_default_vpc(networks, region, [&](std::string_view prefix) {
    const std::string what = account + "/" + region + "/" + std::to_string(++made);
    return std::string(prefix) + "0" + to_hex(bytes_of(sha256(what))).substr(0, kIdDigits);
  });
  return networks;
}

}  // namespace trainyard::api::ec2
