#include "ec2/operations.hpp"

#include <gtest/gtest.h>

#include "operations/testing/operation_caller.hpp"
#include "shapes/ec2.hpp"

namespace trainyard::api::ec2 {
namespace {

namespace aws = shapes::ec2;

using Texts = std::vector<std::string>;

struct World : OperationsWorld {
  World() : OperationsWorld(add_operations) {}

  template <class Operation>
  typename Operation::Output made(const typename Operation::Input& in) {
    auto out = call<Operation>(in);
    EXPECT_TRUE(out) << (out ? "" : out.failure(*Operation::shape().service).message);
    return out ? *std::move(out) : typename Operation::Output();
  }
  std::string vpc(const std::string& cidr = "10.0.0.0/16") {
    return *made<aws::CreateVpc>({.cidr_block = cidr}).vpc->vpc_id;
  }
  aws::Subnet subnet(const std::string& vpc, const std::string& cidr) {
    return *made<aws::CreateSubnet>({.cidr_block = cidr, .vpc_id = vpc}).subnet;
  }
  std::string group(const std::string& vpc, const std::string& name) {
    return *made<aws::CreateSecurityGroup>(
                {.description = "of a test", .group_name = name, .vpc_id = vpc})
                .group_id;
  }
  Texts vpcs(std::vector<aws::Filter> filters) {
    Texts ids;
    const auto found = made<aws::DescribeVpcs>({.filters = std::move(filters)});
    for (const auto& each : *found.vpcs) ids.push_back(*each.vpc_id);
    return ids;
  }
  std::string default_vpc() {
    return vpcs({{.name = "is-default", .values = Texts{"true"}}}).at(0);
  }
};

aws::Filter filter(const std::string& name, const Texts& values) {
  return {.name = name, .values = values};
}

TEST(Vpcs, IncludeTheDefaultOne) {
  World world;
  const auto vpcs = *world.made<aws::DescribeVpcs>({}).vpcs;
  ASSERT_EQ(vpcs.size(), 1u);
  EXPECT_EQ(vpcs[0].cidr_block, "172.31.0.0/16");
  EXPECT_EQ(vpcs[0].is_default, true);
  EXPECT_EQ(vpcs[0].owner_id, "123456789012");
  EXPECT_EQ(world.made<aws::DescribeSubnets>({}).subnets->size(), 3u);
  EXPECT_EQ(world.made<aws::DescribeSecurityGroups>({.group_names = Texts{"default"}})
                .security_groups->size(),
            1u);
  EXPECT_TRUE(world.control.stored_records->all.empty()) << "reading writes nothing";
  EXPECT_EQ(world.refusal<aws::CreateDefaultVpc>({}),
            "DefaultVpcAlreadyExists: A Default VPC already exists for this account in this "
            "region.");
}

TEST(Vpcs, KeepTheirIdsWhenTheirRegionIsFirstWritten) {
  World world;
  const std::string before = world.default_vpc();
  const std::string mine = world.vpc();
  EXPECT_EQ(world.default_vpc(), before);
  EXPECT_EQ(world.made<aws::DescribeVpcs>({}).vpcs->size(), 2u);
  EXPECT_TRUE(world.control.stored_records->all.contains({"ec2_vpc", "eu-west-1/" + mine}));
  world.context.region = "us-east-1";
  EXPECT_EQ(world.made<aws::DescribeVpcs>({}).vpcs->size(), 1u);
  EXPECT_EQ(world.refusal<aws::DescribeVpcs>({.vpc_ids = Texts{mine}}),
            "InvalidVpcID.NotFound: The vpc ID '" + mine + "' does not exist");
}

TEST(Vpcs, AreCreatedAsOnAws) {
  World world;
  const aws::Vpc vpc =
      *world
           .made<aws::CreateVpc>(
               {.cidr_block = "10.1.2.3/16",
                .tag_specifications = {{{.resource_type = "vpc",
                                         .tags = {{{.key = "a", .value = "b"}}}}}}})
           .vpc;
  EXPECT_EQ(vpc.cidr_block, "10.1.0.0/16");
  EXPECT_EQ(vpc.state, "pending");
  EXPECT_EQ(vpc.is_default, false);
  EXPECT_EQ(vpc.tags->front().value, "b");
  EXPECT_EQ(vpc.vpc_id->size(), std::string("vpc-0123456789abcdef0").size());
  const auto shown = world.made<aws::DescribeVpcs>({.vpc_ids = Texts{*vpc.vpc_id}}).vpcs->front();
  EXPECT_EQ(shown.state, "available");
  const auto groups =
      *world.made<aws::DescribeSecurityGroups>({.filters = {{filter("vpc-id", {*vpc.vpc_id})}}})
           .security_groups;
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].group_name, "default");
  EXPECT_EQ(groups[0].ip_permissions->front().user_id_group_pairs->front().group_id,
            groups[0].group_id);
  EXPECT_EQ(groups[0].ip_permissions_egress->front().ip_ranges->front().cidr_ip, "0.0.0.0/0");
}

TEST(Vpcs, AreRejectedWithAwsTexts) {
  World world;
  const auto refusal = [&](const std::string& cidr) {
    return world.refusal<aws::CreateVpc>({.cidr_block = cidr});
  };
  EXPECT_EQ(refusal("10.0.0.0"),
            "InvalidParameterValue: Value (10.0.0.0) for parameter cidrBlock is invalid. This is "
            "not a valid CIDR block.");
  EXPECT_EQ(refusal("10.0.0.0/8"), "InvalidVpc.Range: The CIDR '10.0.0.0/8' is invalid.");
  EXPECT_EQ(refusal("10.0.0.0/29"), "InvalidVpc.Range: The CIDR '10.0.0.0/29' is invalid.");
  EXPECT_EQ(world.refusal<aws::CreateVpc>({}),
            "MissingParameter: Either 'cidrBlock' or 'ipv4IpamPoolId' should be provided.");
  EXPECT_EQ(world.refusal<aws::CreateVpc>(
                {.cidr_block = "10.0.0.0/16", .amazon_provided_ipv6_cidr_block = true}),
            "UnsupportedOperation: The parameter AmazonProvidedIpv6CidrBlock is not offered by "
            "this server");
  EXPECT_EQ(world.refusal<aws::CreateVpc>({.cidr_block = "10.0.0.0/16", .dry_run = true}),
            "DryRunOperation: Request would have succeeded, but DryRun flag is set.");
  EXPECT_EQ(world.refusal<aws::DeleteVpc>({.vpc_id = "vpc-0123456789abcdef0"}),
            "InvalidVpcID.NotFound: The vpc ID 'vpc-0123456789abcdef0' does not exist");
  EXPECT_EQ(world.refusal<aws::DeleteVpc>({.vpc_id = "mine"}),
            "InvalidVpcID.Malformed: Invalid id: \"mine\" (expecting \"vpc-...\")");
  EXPECT_TRUE(world.control.stored_records->all.empty()) << "a rejected change writes nothing";
}

TEST(Vpcs, AreDeletedOnceTheyAreEmpty) {
  World world;
  const std::string vpc = world.vpc();
  const auto subnet = world.subnet(vpc, "10.0.0.0/24");
  const std::string group = world.group(vpc, "jobs");
  const std::string in_use =
      "DependencyViolation: The vpc '" + vpc + "' has dependencies and cannot be deleted.";
  EXPECT_EQ(world.refusal<aws::DeleteVpc>({.vpc_id = vpc}), in_use);
  world.made<aws::DeleteSubnet>({.subnet_id = subnet.subnet_id});
  EXPECT_EQ(world.refusal<aws::DeleteVpc>({.vpc_id = vpc}), in_use);
  world.made<aws::DeleteSecurityGroup>({.group_id = group});
  world.made<aws::DeleteVpc>({.vpc_id = vpc});
  for (const auto& [key, record] : world.control.stored_records->all)
    EXPECT_EQ(dump(record->document).find(vpc), std::string::npos) << key.second;
  EXPECT_EQ(world.refusal<aws::DeleteVpc>({.vpc_id = vpc}),
            "InvalidVpcID.NotFound: The vpc ID '" + vpc + "' does not exist");
}

TEST(Vpcs, DoNotBringBackADeletedDefaultVpc) {
  World world;
  const std::string vpc = world.default_vpc();
  const auto found = world.made<aws::DescribeSubnets>({});
  for (const auto& each : *found.subnets)
    world.made<aws::DeleteSubnet>({.subnet_id = each.subnet_id});
  const auto gateway = world.made<aws::DescribeInternetGateways>({}).internet_gateways->front();
  world.made<aws::DetachInternetGateway>(
      {.internet_gateway_id = gateway.internet_gateway_id, .vpc_id = vpc});
  world.made<aws::DeleteInternetGateway>({.internet_gateway_id = gateway.internet_gateway_id});
  world.made<aws::DeleteVpc>({.vpc_id = vpc});
  EXPECT_TRUE(world.made<aws::DescribeVpcs>({}).vpcs->empty());
  EXPECT_EQ(world.refusal<aws::CreateSecurityGroup>({.description = "d", .group_name = "g"}),
            "VPCIdNotSpecified: No default VPC for this user");
  EXPECT_EQ(world.made<aws::CreateDefaultVpc>({}).vpc->is_default, true);
  EXPECT_EQ(world.made<aws::DescribeSubnets>({}).subnets->size(), 3u);
}

TEST(Vpcs, HaveAttributes) {
  World world;
  const std::string vpc = world.vpc();
  const auto attribute = [&](const std::string& name) {
    return world.made<aws::DescribeVpcAttribute>({.attribute = name, .vpc_id = vpc});
  };
  EXPECT_EQ(attribute("enableDnsSupport").enable_dns_support->value, true);
  EXPECT_EQ(attribute("enableDnsHostnames").enable_dns_hostnames->value, false);
  world.made<aws::ModifyVpcAttribute>({.enable_dns_hostnames = {{.value = true}}, .vpc_id = vpc});
  EXPECT_EQ(attribute("enableDnsHostnames").enable_dns_hostnames->value, true);
  EXPECT_EQ(world.refusal<aws::ModifyVpcAttribute>({.enable_dns_hostnames = {{.value = true}},
                                                    .enable_dns_support = {{.value = true}},
                                                    .vpc_id = vpc}),
            "InvalidParameterCombination: Fields for multiple attribute types specified");
}

TEST(Lists, AreFiltered) {
  World world;
  const std::string ten = world.vpc("10.0.0.0/16"), eleven = world.vpc("11.0.0.0/16");
  world.made<aws::CreateTags>(
      {.resources = Texts{ten}, .tags = {{{.key = "team", .value = "a*"}}}});
  EXPECT_EQ(world.vpcs({filter("cidr", {"10.*"})}), Texts{ten});
  EXPECT_EQ(world.vpcs({filter("cidr", {"1?.0.0.0/16"}), filter("vpc-id", {eleven})}),
            Texts{eleven});
  EXPECT_EQ(world.vpcs({filter("cidr", {"10.0.0.0/16", "11.0.0.0/16"})}).size(), 2u);
  EXPECT_EQ(world.vpcs({filter("tag:team", {"a\\*"})}), Texts{ten});
  EXPECT_TRUE(world.vpcs({filter("tag:team", {"b\\*"})}).empty());
  EXPECT_EQ(world.vpcs({filter("tag-key", {"team"})}), Texts{ten});
  EXPECT_TRUE(world.vpcs({{.name = "cidr", .values = {}}}).empty());
  EXPECT_EQ(world.refusal<aws::DescribeVpcs>({.filters = {{filter("colour", {"red"})}}}),
            "InvalidParameterValue: The filter 'colour' is invalid");
  EXPECT_EQ(world.refusal<aws::DescribeVpcs>({.filters = {{filter("cidr", Texts(201, "x"))}}}),
            "FilterLimitExceeded: The maximum number of filter values specified on a single call "
            "is 200");
}

TEST(Lists, HavePages) {
  World world;
  for (int i = 0; i < 6; ++i) world.vpc();
  Texts seen;
  aws::DescribeVpcsRequest in{.max_results = 5};
  const auto first = world.made<aws::DescribeVpcs>(in);
  ASSERT_EQ(first.vpcs->size(), 5u);
  ASSERT_TRUE(first.next_token);
  world.made<aws::DeleteVpc>({.vpc_id = first.vpcs->front().is_default == true
                                            ? first.vpcs->back().vpc_id
                                            : first.vpcs->front().vpc_id});
  in.next_token = first.next_token;
  const auto second = world.made<aws::DescribeVpcs>(in);
  EXPECT_EQ(second.vpcs->size(), 2u) << "deleting a former item moves no other";
  EXPECT_FALSE(second.next_token);
  EXPECT_EQ(world.refusal<aws::DescribeVpcs>({.next_token = "elsewhere"}),
            "InvalidNextToken: The token 'elsewhere' is invalid");
}

TEST(Subnets, LieInTheirVpcWithoutOverlap) {
  World world;
  const std::string vpc = world.vpc("10.0.0.0/16");
  const auto subnet = world.subnet(vpc, "10.0.1.0/24");
  EXPECT_EQ(subnet.available_ip_address_count, 251);
  EXPECT_EQ(subnet.availability_zone, "eu-west-1a");
  EXPECT_EQ(subnet.availability_zone_id, "euw1-az1");
  EXPECT_EQ(*subnet.subnet_arn, "arn:aws:ec2:eu-west-1:123456789012:subnet/" + *subnet.subnet_id);
  const auto refusal = [&](const std::string& cidr) {
    return world.refusal<aws::CreateSubnet>({.cidr_block = cidr, .vpc_id = vpc});
  };
  EXPECT_EQ(refusal("10.0.1.128/25"),
            "InvalidSubnet.Conflict: The CIDR '10.0.1.128/25' conflicts with another subnet");
  EXPECT_EQ(refusal("10.1.0.0/24"), "InvalidSubnet.Range: The CIDR '10.1.0.0/24' is invalid.");
  EXPECT_EQ(refusal("10.0.2.0/29"), "InvalidSubnet.Range: The CIDR '10.0.2.0/29' is invalid.");
  EXPECT_EQ(refusal("x"),
            "InvalidParameterValue: Value (x) for parameter cidrBlock is invalid. This is not a "
            "valid CIDR block.");
  EXPECT_EQ(world.refusal<aws::CreateSubnet>(
                {.availability_zone = "eu-west-1z", .cidr_block = "10.0.2.0/24", .vpc_id = vpc}),
            "InvalidParameterValue: Value (eu-west-1z) for parameter availabilityZone is invalid. "
            "Subnets can currently only be created in the following availability zones: "
            "eu-west-1a, eu-west-1b, eu-west-1c.");
  EXPECT_EQ(
      *world
           .made<aws::CreateSubnet>(
               {.availability_zone_id = "euw1-az3", .cidr_block = "10.0.2.0/24", .vpc_id = vpc})
           .subnet->availability_zone,
      "eu-west-1c");
}

TEST(Subnets, HaveALimitPerVpc) {
  World world;
  const std::string vpc = world.vpc("10.0.0.0/16");
  for (int i = 0; i < 200; ++i) world.subnet(vpc, "10.0." + std::to_string(i) + ".0/24");
  EXPECT_EQ(
      world.refusal<aws::CreateSubnet>({.cidr_block = "10.0.200.0/24", .vpc_id = vpc}),
      "SubnetLimitExceeded: The maximum number of subnets in VPC '" + vpc + "' has been reached.");
}

TEST(SecurityGroups, HaveUniqueNamesInAVpc) {
  World world;
  const std::string vpc = world.vpc(), group = world.group(vpc, "jobs");
  const auto refusal = [&](const std::string& name) {
    return world.refusal<aws::CreateSecurityGroup>(
        {.description = "d", .group_name = name, .vpc_id = vpc});
  };
  EXPECT_EQ(refusal("jobs"),
            "InvalidGroup.Duplicate: The security group 'jobs' already exists for "
            "VPC '" +
                vpc + "'");
  EXPECT_EQ(refusal("default"),
            "InvalidParameterValue: Cannot use reserved security group name: default");
  EXPECT_EQ(refusal("sg-1"),
            "InvalidParameterValue: Value (sg-1) for parameter GroupName is "
            "invalid. Group names may not be in the format sg-*");
  EXPECT_NE(refusal("\xc3\xa9").find("for parameter groupName is invalid"), std::string::npos);
  world.group(world.vpc(), "jobs");
  EXPECT_EQ(world.refusal<aws::DescribeSecurityGroups>({.group_names = Texts{"jobs"}}),
            "InvalidGroup.NotFound: The security group 'jobs' does not exist in default VPC '" +
                world.default_vpc() + "'");
}

TEST(SecurityGroups, AreNotDeletedWhileAnotherRefersToThem) {
  World world;
  const std::string vpc = world.vpc(), jobs = world.group(vpc, "jobs"), web = world.group(vpc, "w");
  aws::IpPermission permission;
  permission.ip_protocol = "tcp";
  permission.from_port = permission.to_port = 443;
  permission.user_id_group_pairs.emplace().emplace_back().group_id = jobs;
  world.made<aws::AuthorizeSecurityGroupIngress>(
      {.group_id = web, .ip_permissions = {{permission}}});
  EXPECT_EQ(world.refusal<aws::DeleteSecurityGroup>({.group_id = jobs}),
            "DependencyViolation: resource " + jobs + " has a dependent object");
  world.made<aws::DeleteSecurityGroup>({.group_id = web});
  world.made<aws::DeleteSecurityGroup>({.group_id = jobs});
  const std::string own =
      *world.made<aws::DescribeSecurityGroups>({.filters = {{filter("vpc-id", {vpc})}}})
           .security_groups->front()
           .group_id;
  EXPECT_EQ(world.refusal<aws::DeleteSecurityGroup>({.group_id = own}),
            "CannotDelete: the specified group: \"" + own +
                "\" name: \"default\" cannot be deleted by a user");
  EXPECT_EQ(world.refusal<aws::DeleteSecurityGroup>({}),
            "MissingParameter: The request must contain the parameter GroupId");
}

struct RulesWorld : World {
  std::string group_id = group(vpc(), "jobs");

  static aws::IpPermission permission(const std::string& protocol, std::optional<int64_t> from,
                                      std::optional<int64_t> to, const Texts& cidrs) {
    aws::IpPermission out;
    out.ip_protocol = protocol;
    out.from_port = from;
    out.to_port = to;
    out.ip_ranges.emplace();
    for (const std::string& cidr : cidrs) out.ip_ranges->push_back({.cidr_ip = cidr});
    return out;
  }
  aws::AuthorizeSecurityGroupIngressRequest ingress(const aws::IpPermission& permission) {
    return {.group_id = group_id, .ip_permissions = {{permission}}};
  }
  std::string refused_ingress(const aws::IpPermission& permission) {
    return refusal<aws::AuthorizeSecurityGroupIngress>(ingress(permission));
  }
  aws::SecurityGroup shown() {
    return made<aws::DescribeSecurityGroups>({.group_ids = Texts{group_id}})
        .security_groups->front();
  }
};

TEST(SecurityGroupRules, AreOneForEachPeer) {
  RulesWorld world;
  const auto rules = *world
                          .made<aws::AuthorizeSecurityGroupIngress>(world.ingress(
                              world.permission("6", 22, 80, {"10.0.0.7/8", "0.0.0.0/0"})))
                          .security_group_rules;
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].ip_protocol, "tcp");
  EXPECT_EQ(rules[0].cidr_ipv4, "10.0.0.0/8");
  EXPECT_EQ(rules[0].is_egress, false);
  const auto shown = *world.shown().ip_permissions;
  ASSERT_EQ(shown.size(), 1u) << "rules of equal ports are one permission";
  EXPECT_EQ(shown[0].ip_ranges->size(), 2u);
  EXPECT_EQ(shown[0].to_port, 80);
  const auto described = world.made<aws::DescribeSecurityGroupRules>(
      {.filters = {{filter("group-id", {world.group_id})}}});
  EXPECT_EQ(described.security_group_rules->size(), 3u);  // with the rule for all egress
}

TEST(SecurityGroupRules, AcceptTheOlderForm) {
  RulesWorld world;
  world.made<aws::AuthorizeSecurityGroupIngress>({.cidr_ip = "10.0.0.0/8",
                                                  .from_port = 22,
                                                  .group_id = world.group_id,
                                                  .ip_protocol = "tcp",
                                                  .to_port = 22});
  EXPECT_EQ(world.shown().ip_permissions->front().ip_ranges->front().cidr_ip, "10.0.0.0/8");
  world.made<aws::RevokeSecurityGroupIngress>({.cidr_ip = "10.0.0.0/8",
                                               .from_port = 22,
                                               .group_id = world.group_id,
                                               .ip_protocol = "tcp",
                                               .to_port = 22});
  EXPECT_TRUE(world.shown().ip_permissions->empty());
}

TEST(SecurityGroupRules, AreRejectedWithAwsTexts) {
  RulesWorld world;
  const auto ssh = world.permission("tcp", 22, 22, {"0.0.0.0/0"});
  world.made<aws::AuthorizeSecurityGroupIngress>(world.ingress(ssh));
  EXPECT_EQ(world.refused_ingress(ssh),
            "InvalidPermission.Duplicate: the specified rule \"peer: 0.0.0.0/0, TCP, from port: "
            "22, to port: 22, ALLOW\" already exists");
  const auto refusal = [&](const std::string& protocol, std::optional<int64_t> from,
                           std::optional<int64_t> to, const Texts& cidrs) {
    return world.refused_ingress(world.permission(protocol, from, to, cidrs));
  };
  const Texts any = {"0.0.0.0/0"};
  EXPECT_EQ(refusal("tcp", 1, 2, {"10.0.0.1"}),
            "InvalidParameterValue: CIDR block 10.0.0.1 is malformed");
  EXPECT_EQ(refusal("tcp", {}, {}, any),
            "InvalidParameterValue: Invalid value 'Must specify both from and to ports with "
            "TCP/UDP.' for portRange.");
  EXPECT_EQ(refusal("tcp", 1, 65'536, any),
            "InvalidParameterValue: TCP/UDP port (65536) out of range");
  EXPECT_EQ(refusal("udp", 2, 1, any), "InvalidParameterValue: Invalid TCP/UDP port range (2:1)");
  EXPECT_EQ(refusal("carrier-pigeon", 1, 2, any),
            "InvalidParameterValue: Invalid value 'carrier-pigeon' for IP protocol. Unknown "
            "protocol.");
  EXPECT_EQ(refusal("icmp", 256, -1, any),
            "InvalidParameterValue: ICMP type and code must be from -1 to 255");
  EXPECT_EQ(refusal("tcp", 1, 2, {}),
            "MissingParameter: The request must contain a source or destination for the rule");
  aws::IpPermission peer;
  peer.ip_protocol = "-1";
  peer.user_id_group_pairs.emplace().emplace_back().group_id = world.group(world.vpc(), "far");
  EXPECT_EQ(world.refused_ingress(peer),
            "InvalidGroup.NotFound: You have specified two resources that belong to different "
            "networks.");
}

TEST(SecurityGroupRules, HaveALimitForEachDirection) {
  RulesWorld world;
  Texts cidrs;
  for (int i = 0; i < 60; ++i) cidrs.push_back("10.0." + std::to_string(i) + ".0/24");
  world.made<aws::AuthorizeSecurityGroupIngress>(
      world.ingress(world.permission("-1", {}, {}, cidrs)));
  EXPECT_EQ(world.refused_ingress(world.permission("-1", {}, {}, {"10.1.0.0/24"})),
            "RulesPerSecurityGroupLimitExceeded: The maximum number of rules per security group "
            "has been reached.");
  EXPECT_EQ(world.shown().ip_permissions->front().ip_ranges->size(), 60u);
}

TEST(SecurityGroupRules, AreRevokedByValueOrId) {
  RulesWorld world;
  const auto all = world.permission("-1", {}, {}, {"0.0.0.0/0"});
  const aws::RevokeSecurityGroupEgressRequest revoke{.group_id = world.group_id,
                                                     .ip_permissions = {{all}}};
  const auto revoked = world.made<aws::RevokeSecurityGroupEgress>(revoke);
  EXPECT_EQ(revoked.revoked_security_group_rules->front().cidr_ipv4, "0.0.0.0/0");
  EXPECT_TRUE(world.shown().ip_permissions_egress->empty());
  EXPECT_EQ(world.refusal<aws::RevokeSecurityGroupEgress>(revoke),
            "InvalidPermission.NotFound: The specified rule does not exist in this security "
            "group.");
  const auto rule = world.made<aws::AuthorizeSecurityGroupEgress>(
      {.group_id = world.group_id, .ip_permissions = {{all}}});
  const std::string id = *rule.security_group_rules->front().security_group_rule_id;
  EXPECT_EQ(world.refusal<aws::RevokeSecurityGroupIngress>(
                {.group_id = world.group_id, .security_group_rule_ids = Texts{id}}),
            "InvalidSecurityGroupRuleId.NotFound: The security group rule ID '" + id +
                "' does not exist");
  world.made<aws::RevokeSecurityGroupEgress>(
      {.security_group_rule_ids = Texts{id}, .group_id = world.group_id});
  EXPECT_TRUE(world.shown().ip_permissions_egress->empty());
}

TEST(SecurityGroupRules, RevokeReturnsUnknownRulesOfTheDefaultVpc) {
  RulesWorld world;
  const std::string group = world.group(world.default_vpc(), "jobs");
  const auto out = world.made<aws::RevokeSecurityGroupIngress>(
      {.group_id = group, .ip_permissions = {{world.permission("tcp", 22, 22, {"10.0.0.0/8"})}}});
  ASSERT_TRUE(out.unknown_ip_permissions);
  EXPECT_EQ(out.unknown_ip_permissions->front().from_port, 22);
}

}  // namespace
}  // namespace trainyard::api::ec2
