// Implements the operations on VPCs.
#include "ec2/common.hpp"
#include "ec2/ip_blocks.hpp"

namespace trainyard::api::ec2 {
namespace {

// The limit of a region. AWS's is 5, and is raised on request. Each VPC is three ledger records.
constexpr size_t kVpcsMax = 500;
constexpr unsigned kVpcPrefixBitsMin = 16, kVpcPrefixBitsMax = 28;  // as AWS
constexpr std::string_view kNoBlock = "This is not a valid CIDR block.";

// Returns the id of the DHCP options that all VPCs of a region share.
std::string dhcp_options_of(const Networks& networks) {
  const Vpc* vpc = networks.default_vpc();
  if (!vpc) return "default";
  return "dopt-" + vpc->id.substr(kVpcId.prefix.size());
}

aws::Vpc to_shape(const Networks& networks, const Context& context, const Vpc& vpc) {
  aws::Vpc out;
  out.owner_id = context.principal.account;
  out.instance_tenancy = vpc.tenancy;
  out.cidr_block_association_set = {
      {.association_id = vpc.association,
       .cidr_block = vpc.cidr,
       .cidr_block_state = aws::VpcCidrBlockState{.state = "associated", .status_message = {}}}};
  out.is_default = vpc.is_default;
  out.tags = shown_tags<aws::Tag>(vpc.tags);
  out.vpc_id = vpc.id;
  out.state = "available";
  out.cidr_block = vpc.cidr;
  out.dhcp_options_id = dhcp_options_of(networks);
  return out;
}

// Returns the first parameter of the request that this server does not support.
std::optional<Failure> refuse_unoffered(const aws::CreateVpcRequest& in) {
  for (const auto& [given, name] :
       {std::pair{in.ipv6_pool.has_value(), "Ipv6Pool"},
        {in.ipv6_cidr_block.has_value(), "Ipv6CidrBlock"},
        {in.ipv4_ipam_pool_id.has_value(), "Ipv4IpamPoolId"},
        {in.ipv4_netmask_length.has_value(), "Ipv4NetmaskLength"},
        {in.ipv6_ipam_pool_id.has_value(), "Ipv6IpamPoolId"},
        {in.ipv6_netmask_length.has_value(), "Ipv6NetmaskLength"},
        {in.vpc_encryption_control.has_value(), "VpcEncryptionControl"},
        {in.amazon_provided_ipv6_cidr_block.value_or(false), "AmazonProvidedIpv6CidrBlock"}})
    if (given) return unsupported_parameter(name);
  return std::nullopt;
}

Outcome<aws::CreateVpcResult> create_vpc(const Edit& edit, const aws::CreateVpcRequest& in) {
  if (auto failure = refuse_unoffered(in)) return *std::move(failure);
  if (!in.cidr_block)
    return missing_parameter("Either 'cidrBlock' or 'ipv4IpamPoolId' should be provided.");
  const auto block = parse_ipv4_block(*in.cidr_block);
  if (!block) return invalid_value(*in.cidr_block, "cidrBlock", kNoBlock);
  if (block->prefix_bits < kVpcPrefixBitsMin || block->prefix_bits > kVpcPrefixBitsMax)
    return ec2_failure("InvalidVpc.Range", "The CIDR '" + *in.cidr_block + "' is invalid.");
  if (edit.networks.vpcs.size() >= kVpcsMax)
    return ec2_failure("VpcLimitExceeded", "The maximum number of VPCs has been reached.");
  Tags tags = TRY(tags_for(kVpcId, in.tag_specifications));
  Vpc& vpc = add_vpc(edit.networks, to_string(*block), edit.make_id);
  vpc.tenancy = in.instance_tenancy.value_or("default");
  vpc.tags = std::move(tags);
  aws::CreateVpcResult out{.vpc = to_shape(edit.networks, edit.context, vpc)};
  out.vpc->state = "pending";  // as on AWS, though it is available at once
  return out;
}

Outcome<aws::CreateDefaultVpcResult> create_default_vpc(const Edit& edit,
                                                        const aws::CreateDefaultVpcRequest&) {
  if (edit.networks.default_vpc())
    return ec2_failure("DefaultVpcAlreadyExists",
                       "A Default VPC already exists for this account in this region.");
  const Vpc& vpc = add_default_vpc(edit.networks, edit.context.region, edit.make_id);
  return aws::CreateDefaultVpcResult{.vpc = to_shape(edit.networks, edit.context, vpc)};
}

constexpr Attribute<aws::Vpc> kVpcAttributes[] = {
    {"vpc-id", [](const aws::Vpc& vpc) { return texts(vpc.vpc_id); }},
    {"cidr", [](const aws::Vpc& vpc) { return texts(vpc.cidr_block); }},
    {"cidrBlock", [](const aws::Vpc& vpc) { return texts(vpc.cidr_block); }},
    {"cidr-block", [](const aws::Vpc& vpc) { return texts(vpc.cidr_block); }},
    {"cidr-block-association.cidr-block",
     [](const aws::Vpc& vpc) { return texts(vpc.cidr_block); }},
    {"cidr-block-association.association-id",
     [](const aws::Vpc& vpc) {
       return texts(vpc.cidr_block_association_set->front().association_id);
     }},
    {"cidr-block-association.state",
     [](const aws::Vpc& vpc) {
       return texts(vpc.cidr_block_association_set->front().cidr_block_state->state);
     }},
    {"dhcp-options-id", [](const aws::Vpc& vpc) { return texts(vpc.dhcp_options_id); }},
    {"isDefault", [](const aws::Vpc& vpc) { return texts(vpc.is_default); }},
    {"is-default", [](const aws::Vpc& vpc) { return texts(vpc.is_default); }},
    {"owner-id", [](const aws::Vpc& vpc) { return texts(vpc.owner_id); }},
    {"state", [](const aws::Vpc& vpc) { return texts(vpc.state); }},
};

Outcome<aws::DescribeVpcsResult> describe_vpcs(const Networks& networks, const Context& context,
                                               const aws::DescribeVpcsRequest& in) {
  std::vector<aws::Vpc> all;
  for (const Vpc* vpc : TRY(named(networks.vpcs, kVpcId, in.vpc_ids)))
    all.push_back(to_shape(networks, context, *vpc));
  TRY(keep_matching(in.filters, kVpcAttributes, all));
  aws::DescribeVpcsResult out;
  out.vpcs = TRY(page_of(
      in, std::move(all), [](const aws::Vpc& vpc) { return *vpc.vpc_id; }, out.next_token));
  return out;
}

bool in_use(const Networks& networks, const std::string& vpc) {
  const auto any = [&](const auto& all, const auto& counts) {
    return std::ranges::any_of(
        all, [&](const auto& each) { return each.second.vpc == vpc && counts(each.second); });
  };
  const auto always = [](const auto&) { return true; };
  return any(networks.subnets, always) || any(networks.gateways, always) ||
         any(networks.groups, [](const SecurityGroup& group) { return group.name != "default"; }) ||
         any(networks.route_tables,
             [](const RouteTable& table) { return table.main_association.empty(); });
}

Outcome<aws::Nothing> delete_vpc(const Edit& edit, const aws::DeleteVpcRequest& in) {
  Networks& networks = edit.networks;
  const std::string id = TRY(find(networks.vpcs, kVpcId, *in.vpc_id))->id;
  if (in_use(networks, id))
    return ec2_failure("DependencyViolation",
                       "The vpc '" + id + "' has dependencies and cannot be deleted.");
  std::erase_if(networks.groups, [&](const auto& each) { return each.second.vpc == id; });
  std::erase_if(networks.route_tables, [&](const auto& each) { return each.second.vpc == id; });
  networks.vpcs.erase(id);
  return aws::Nothing{};
}

Outcome<aws::DescribeVpcAttributeResult> describe_vpc_attribute(
    const Networks& networks, const Context&, const aws::DescribeVpcAttributeRequest& in) {
  const Vpc& vpc = *TRY(find(networks.vpcs, kVpcId, *in.vpc_id));
  aws::DescribeVpcAttributeResult out;
  out.vpc_id = vpc.id;
  if (*in.attribute == "enableDnsSupport")
    out.enable_dns_support = aws::AttributeBooleanValue{.value = vpc.dns_support};
  else if (*in.attribute == "enableDnsHostnames")
    out.enable_dns_hostnames = aws::AttributeBooleanValue{.value = vpc.dns_hostnames};
  else
    out.enable_network_address_usage_metrics =
        aws::AttributeBooleanValue{.value = vpc.usage_metrics};
  return out;
}

Outcome<aws::Nothing> modify_vpc_attribute(const Edit& edit,
                                           const aws::ModifyVpcAttributeRequest& in) {
  Vpc& vpc = *TRY(find(edit.networks.vpcs, kVpcId, *in.vpc_id));
  int given = 0;
  const auto take = [&](const std::optional<aws::AttributeBooleanValue>& attribute, bool& to) {
    if (!attribute) return;
    ++given;
    to = attribute->value.value_or(false);
  };
  take(in.enable_dns_support, vpc.dns_support);
  take(in.enable_dns_hostnames, vpc.dns_hostnames);
  take(in.enable_network_address_usage_metrics, vpc.usage_metrics);
  if (given == 0)
    return missing_parameter("The request must contain exactly one attribute of the VPC");
  if (given > 1)
    return invalid_parameter_combination("Fields for multiple attribute types specified");
  return aws::Nothing{};
}

}  // namespace

void add_vpcs(OperationTable& table, const Store& store) {
  add_change<aws::CreateVpc>(table, store, create_vpc);
  add_change<aws::CreateDefaultVpc>(table, store, create_default_vpc);
  add_read<aws::DescribeVpcs>(table, store, describe_vpcs);
  add_change<aws::DeleteVpc>(table, store, delete_vpc);
  add_read<aws::DescribeVpcAttribute>(table, store, describe_vpc_attribute);
  add_change<aws::ModifyVpcAttribute>(table, store, modify_vpc_attribute);
}

}  // namespace trainyard::api::ec2
