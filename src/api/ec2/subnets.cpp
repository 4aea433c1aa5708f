// Implements the operations on subnets.
#include "base/text.hpp"
#include "ec2/common.hpp"
#include "ec2/ip_blocks.hpp"

namespace trainyard::api::ec2 {
namespace {

constexpr size_t kSubnetsOfVpcMax = 200;  // as AWS
// The limit of a region: each subnet is a record of the ledger, which all users share.
constexpr size_t kSubnetsMax = 5'000;
constexpr unsigned kSubnetPrefixBitsMax = 28;  // as AWS
constexpr int64_t kReservedAddresses = 5;      // of each subnet, as AWS

aws::Subnet to_shape(const Context& context, const Subnet& subnet) {
  aws::Subnet out;
  out.availability_zone = subnet.zone;
  out.availability_zone_id = zone_id(context.region, subnet.zone);
  out.owner_id = context.principal.account;
  out.assign_ipv6_address_on_creation = false;
  out.map_customer_owned_ip_on_launch = false;
  out.tags = shown_tags<aws::Tag>(subnet.tags);
  out.subnet_arn = arn_of(context, kSubnetId.resource_type, subnet.id);
  out.enable_dns64 = false;
  out.ipv6_native = false;
  out.subnet_id = subnet.id;
  out.state = "available";
  out.vpc_id = subnet.vpc;
  out.cidr_block = subnet.cidr;
  // No host of a job takes an address of a subnet.
  out.available_ip_address_count =
      int64_t(parse_ipv4_block(subnet.cidr).value().size()) - kReservedAddresses;
  out.default_for_az = subnet.default_for_zone;
  out.map_public_ip_on_launch = subnet.public_addresses;
  return out;
}

// Returns the zone that the request names by name or id, or the first one.
Outcome<std::string> zone_of(const Context& context, const aws::CreateSubnetRequest& in) {
  const auto zones = zones_of(context.region);
  for (const std::string& zone : zones) {
    if (in.availability_zone && *in.availability_zone != zone) continue;
    if (in.availability_zone_id && *in.availability_zone_id != zone_id(context.region, zone))
      continue;
    return zone;
  }
  constexpr std::string_view kOnly =
      "Subnets can currently only be created in the following availability zones: ";
  if (in.availability_zone)
    return invalid_value(*in.availability_zone, "availabilityZone",
                         std::string(kOnly) + join(zones, ", ") + ".");
  std::vector<std::string> ids;
  for (const std::string& zone : zones) ids.push_back(zone_id(context.region, zone));
  return invalid_value(*in.availability_zone_id, "availabilityZoneId",
                       std::string(kOnly) + join(ids, ", ") + ".");
}

std::optional<Failure> refuse_unoffered(const aws::CreateSubnetRequest& in) {
  for (const auto& [given, name] : {std::pair{in.ipv6_cidr_block.has_value(), "Ipv6CidrBlock"},
                                    {in.outpost_arn.has_value(), "OutpostArn"},
                                    {in.ipv6_native.value_or(false), "Ipv6Native"},
                                    {in.ipv4_ipam_pool_id.has_value(), "Ipv4IpamPoolId"},
                                    {in.ipv4_netmask_length.has_value(), "Ipv4NetmaskLength"},
                                    {in.ipv6_ipam_pool_id.has_value(), "Ipv6IpamPoolId"},
                                    {in.ipv6_netmask_length.has_value(), "Ipv6NetmaskLength"}})
    if (given) return unsupported_parameter(name);
  return std::nullopt;
}

// Checks that the range lies in the VPC's and is free.
Outcome<Ipv4Block> block_of(const Networks& networks, const Vpc& vpc, const std::string& text) {
  const auto block = parse_ipv4_block(text);
  if (!block) return invalid_value(text, "cidrBlock", "This is not a valid CIDR block.");
  if (block->prefix_bits > kSubnetPrefixBitsMax ||
      !contains(parse_ipv4_block(vpc.cidr).value(), *block))
    return ec2_failure("InvalidSubnet.Range", "The CIDR '" + text + "' is invalid.");
  for (const auto& [id, other] : networks.subnets)
    if (other.vpc == vpc.id && overlap(parse_ipv4_block(other.cidr).value(), *block))
      return ec2_failure("InvalidSubnet.Conflict",
                         "The CIDR '" + text + "' conflicts with another subnet");
  return *block;
}

Outcome<aws::CreateSubnetResult> create_subnet(const Edit& edit,
                                               const aws::CreateSubnetRequest& in) {
  Networks& networks = edit.networks;
  if (auto failure = refuse_unoffered(in)) return *std::move(failure);
  if (!in.cidr_block) return absent_parameter("CidrBlock");
  const Vpc& vpc = *TRY(find(networks.vpcs, kVpcId, *in.vpc_id));
  Subnet subnet;
  subnet.zone = TRY(zone_of(edit.context, in));
  subnet.cidr = to_string(TRY(block_of(networks, vpc, *in.cidr_block)));
  const auto of_vpc = std::ranges::count_if(
      networks.subnets, [&](const auto& each) { return each.second.vpc == vpc.id; });
  if (size_t(of_vpc) >= kSubnetsOfVpcMax || networks.subnets.size() >= kSubnetsMax)
    return ec2_failure("SubnetLimitExceeded",
                       "The maximum number of subnets in VPC '" + vpc.id + "' has been reached.");
  subnet.id = edit.make_id(kSubnetId.prefix);
  subnet.vpc = vpc.id;
  subnet.tags = TRY(tags_for(kSubnetId, in.tag_specifications));
  const Subnet& made = networks.subnets[subnet.id] = subnet;
  return aws::CreateSubnetResult{.subnet = to_shape(edit.context, made)};
}

constexpr Attribute<aws::Subnet> kSubnetAttributes[] = {
    {"subnet-id", [](const aws::Subnet& subnet) { return texts(subnet.subnet_id); }},
    {"vpc-id", [](const aws::Subnet& subnet) { return texts(subnet.vpc_id); }},
    {"cidr", [](const aws::Subnet& subnet) { return texts(subnet.cidr_block); }},
    {"cidrBlock", [](const aws::Subnet& subnet) { return texts(subnet.cidr_block); }},
    {"cidr-block", [](const aws::Subnet& subnet) { return texts(subnet.cidr_block); }},
    {"availability-zone",
     [](const aws::Subnet& subnet) { return texts(subnet.availability_zone); }},
    {"availabilityZone", [](const aws::Subnet& subnet) { return texts(subnet.availability_zone); }},
    {"availability-zone-id",
     [](const aws::Subnet& subnet) { return texts(subnet.availability_zone_id); }},
    {"availabilityZoneId",
     [](const aws::Subnet& subnet) { return texts(subnet.availability_zone_id); }},
    {"available-ip-address-count",
     [](const aws::Subnet& subnet) { return texts(subnet.available_ip_address_count); }},
    {"default-for-az", [](const aws::Subnet& subnet) { return texts(subnet.default_for_az); }},
    {"defaultForAz", [](const aws::Subnet& subnet) { return texts(subnet.default_for_az); }},
    {"map-public-ip-on-launch",
     [](const aws::Subnet& subnet) { return texts(subnet.map_public_ip_on_launch); }},
    {"ipv6-native", [](const aws::Subnet& subnet) { return texts(subnet.ipv6_native); }},
    {"owner-id", [](const aws::Subnet& subnet) { return texts(subnet.owner_id); }},
    {"state", [](const aws::Subnet& subnet) { return texts(subnet.state); }},
    {"subnet-arn", [](const aws::Subnet& subnet) { return texts(subnet.subnet_arn); }},
};

Outcome<aws::DescribeSubnetsResult> describe_subnets(const Networks& networks,
                                                     const Context& context,
                                                     const aws::DescribeSubnetsRequest& in) {
  std::vector<aws::Subnet> all;
  for (const Subnet* subnet : TRY(named(networks.subnets, kSubnetId, in.subnet_ids)))
    all.push_back(to_shape(context, *subnet));
  TRY(keep_matching(in.filters, kSubnetAttributes, all));
  aws::DescribeSubnetsResult out;
  out.subnets = TRY(page_of(
      in, std::move(all), [](const aws::Subnet& subnet) { return *subnet.subnet_id; },
      out.next_token));
  return out;
}

// Deletes a subnet with its associations with route tables.
Outcome<aws::Nothing> delete_subnet(const Edit& edit, const aws::DeleteSubnetRequest& in) {
  const std::string id = TRY(find(edit.networks.subnets, kSubnetId, *in.subnet_id))->id;
  for (auto& [table_id, table] : edit.networks.route_tables)
    std::erase_if(table.associations, [&](const auto& each) { return each.subnet == id; });
  edit.networks.subnets.erase(id);
  return aws::Nothing{};
}

Outcome<aws::Nothing> modify_subnet_attribute(const Edit& edit,
                                              const aws::ModifySubnetAttributeRequest& in) {
  Subnet& subnet = *TRY(find(edit.networks.subnets, kSubnetId, *in.subnet_id));
  if (!in.map_public_ip_on_launch)
    return ec2_failure("UnsupportedOperation",
                       "This server supports only the subnet attribute MapPublicIpOnLaunch");
  subnet.public_addresses = in.map_public_ip_on_launch->value.value_or(false);
  return aws::Nothing{};
}

}  // namespace

void add_subnets(OperationTable& table, const Store& store) {
  add_change<aws::CreateSubnet>(table, store, create_subnet);
  add_read<aws::DescribeSubnets>(table, store, describe_subnets);
  add_change<aws::DeleteSubnet>(table, store, delete_subnet);
  add_change<aws::ModifySubnetAttribute>(table, store, modify_subnet_attribute);
}

}  // namespace trainyard::api::ec2
