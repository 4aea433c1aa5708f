// Implements the operations on internet gateways.
#include "ec2/common.hpp"

namespace trainyard::api::ec2 {
namespace {

// The limit of a region: one gateway for each VPC, as on AWS.
constexpr size_t kGatewaysMax = 500;

aws::InternetGateway to_shape(const Context& context, const InternetGateway& gateway) {
  aws::InternetGateway out;
  out.attachments.emplace();
  if (!gateway.vpc.empty())
    out.attachments->push_back({.state = "available", .vpc_id = gateway.vpc});
  out.internet_gateway_id = gateway.id;
  out.owner_id = context.principal.account;
  out.tags = shown_tags<aws::Tag>(gateway.tags);
  return out;
}

Outcome<aws::CreateInternetGatewayResult> create_internet_gateway(
    const Edit& edit, const aws::CreateInternetGatewayRequest& in) {
  if (edit.networks.gateways.size() >= kGatewaysMax)
    return ec2_failure("InternetGatewayLimitExceeded",
                       "The maximum number of internet gateways has been reached.");
  InternetGateway gateway;
  gateway.id = edit.make_id(kGatewayId.prefix);
  gateway.tags = TRY(tags_for(kGatewayId, in.tag_specifications));
  const InternetGateway& made = edit.networks.gateways[gateway.id] = gateway;
  return aws::CreateInternetGatewayResult{.internet_gateway = to_shape(edit.context, made)};
}

using Gateway = aws::InternetGateway;
constexpr Attribute<Gateway> kGatewayAttributes[] = {
    {"internet-gateway-id", [](const Gateway& each) { return texts(each.internet_gateway_id); }},
    {"owner-id", [](const Gateway& each) { return texts(each.owner_id); }},
    {"attachment.vpc-id",
     [](const Gateway& each) {
       return each.attachments->empty() ? Texts() : texts(each.attachments->front().vpc_id);
     }},
    {"attachment.state",
     [](const Gateway& each) {
       return each.attachments->empty() ? Texts() : texts(each.attachments->front().state);
     }},
};

Outcome<aws::DescribeInternetGatewaysResult> describe_internet_gateways(
    const Networks& networks, const Context& context,
    const aws::DescribeInternetGatewaysRequest& in) {
  std::vector<Gateway> all;
  for (const InternetGateway* gateway :
       TRY(named(networks.gateways, kGatewayId, in.internet_gateway_ids)))
    all.push_back(to_shape(context, *gateway));
  TRY(keep_matching(in.filters, kGatewayAttributes, all));
  aws::DescribeInternetGatewaysResult out;
  out.internet_gateways = TRY(page_of(
      in, std::move(all), [](const Gateway& each) { return *each.internet_gateway_id; },
      out.next_token));
  return out;
}

Outcome<aws::Nothing> attach_internet_gateway(const Edit& edit,
                                              const aws::AttachInternetGatewayRequest& in) {
  auto& gateways = edit.networks.gateways;
  InternetGateway& gateway = *TRY(find(gateways, kGatewayId, *in.internet_gateway_id));
  const std::string vpc = TRY(find(edit.networks.vpcs, kVpcId, *in.vpc_id))->id;
  if (!gateway.vpc.empty())
    return ec2_failure("Resource.AlreadyAssociated",
                       "resource " + gateway.id + " is already attached to network " + gateway.vpc);
  if (std::ranges::any_of(gateways, [&](const auto& each) { return each.second.vpc == vpc; }))
    return invalid_parameter_value("Network " + vpc + " already has an internet gateway attached");
  gateway.vpc = vpc;
  return aws::Nothing{};
}

Outcome<aws::Nothing> detach_internet_gateway(const Edit& edit,
                                              const aws::DetachInternetGatewayRequest& in) {
  InternetGateway& gateway =
      *TRY(find(edit.networks.gateways, kGatewayId, *in.internet_gateway_id));
  const std::string vpc = TRY(find(edit.networks.vpcs, kVpcId, *in.vpc_id))->id;
  if (gateway.vpc != vpc)
    return ec2_failure("Gateway.NotAttached",
                       "resource " + gateway.id + " is not attached to network " + vpc);
  gateway.vpc.clear();
  return aws::Nothing{};
}

// Deletes a gateway. Routes to it remain, in the state "blackhole".
Outcome<aws::Nothing> delete_internet_gateway(const Edit& edit,
                                              const aws::DeleteInternetGatewayRequest& in) {
  InternetGateway& gateway =
      *TRY(find(edit.networks.gateways, kGatewayId, *in.internet_gateway_id));
  if (!gateway.vpc.empty())
    return ec2_failure("DependencyViolation", "The internetGateway '" + gateway.id +
                                                  "' has dependencies and cannot be deleted.");
  edit.networks.gateways.erase(std::string(gateway.id));
  return aws::Nothing{};
}

}  // namespace

void add_internet_gateways(OperationTable& table, const Store& store) {
  add_change<aws::CreateInternetGateway>(table, store, create_internet_gateway);
  add_read<aws::DescribeInternetGateways>(table, store, describe_internet_gateways);
  add_change<aws::AttachInternetGateway>(table, store, attach_internet_gateway);
  add_change<aws::DetachInternetGateway>(table, store, detach_internet_gateway);
  add_change<aws::DeleteInternetGateway>(table, store, delete_internet_gateway);
}

}  // namespace trainyard::api::ec2
