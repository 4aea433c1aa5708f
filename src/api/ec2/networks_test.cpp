#include "ec2/networks.hpp"

#include <gtest/gtest.h>

#include <set>

namespace trainyard::api::ec2 {
namespace {

TEST(Zones, HaveAwssIds) {
  const std::pair<std::string, std::string> kIds[] = {
      {"us-east-1", "use1-az1"},       {"us-west-2", "usw2-az1"},
      {"eu-central-1", "euc1-az1"},    {"eu-west-3", "euw3-az1"},
      {"ap-southeast-2", "apse2-az1"}, {"sa-east-1", "sae1-az1"},
      {"us-gov-west-1", "usgw1-az1"},  {"ap-northeast-1", "apne1-az1"},
      {"ca-central-1", "cac1-az1"}};
  for (const auto& [region, id] : kIds) EXPECT_EQ(zone_id(region, region + "a"), id);
  EXPECT_EQ(zone_id("us-east-1", "us-east-1c"), "use1-az3");
  EXPECT_EQ(zones_of("us-east-1"),
            (std::vector<std::string>{"us-east-1a", "us-east-1b", "us-east-1c"}));
}

TEST(DefaultNetworks, EqualThoseOfAnAwsAccount) {
  const Networks networks = default_networks("123456789012", "eu-west-1");
  ASSERT_TRUE(networks.default_vpc());
  const Vpc& vpc = *networks.default_vpc();
  EXPECT_EQ(vpc.cidr, "172.31.0.0/16");
  std::set<std::string> blocks, zones;
  for (const auto& [id, subnet] : networks.subnets) {
    EXPECT_EQ(subnet.vpc, vpc.id);
    EXPECT_TRUE(subnet.default_for_zone && subnet.public_addresses);
    blocks.insert(subnet.cidr);
    zones.insert(subnet.zone);
  }
  EXPECT_EQ(blocks, (std::set<std::string>{"172.31.0.0/20", "172.31.16.0/20", "172.31.32.0/20"}));
  EXPECT_EQ(zones, (std::set<std::string>{"eu-west-1a", "eu-west-1b", "eu-west-1c"}));
  ASSERT_EQ(networks.groups.size(), 1u);
  EXPECT_EQ(networks.groups.begin()->second.name, "default");
  EXPECT_EQ(networks.groups.begin()->second.rules.size(), 2u);
  EXPECT_EQ(networks.gateways.begin()->second.vpc, vpc.id);
  EXPECT_EQ(networks.route_tables.begin()->second.routes.size(), 1u);
}

TEST(DefaultNetworks, HaveStableIdsThatDifferBetweenRegions) {
  const auto id = [](const std::string& account, const std::string& region) {
    return default_networks(account, region).default_vpc()->id;
  };
  EXPECT_EQ(id("123456789012", "eu-west-1"), id("123456789012", "eu-west-1"));
  EXPECT_NE(id("123456789012", "eu-west-1"), id("123456789012", "eu-west-2"));
  EXPECT_NE(id("123456789012", "eu-west-1"), id("210987654321", "eu-west-1"));
  EXPECT_EQ(id("123456789012", "eu-west-1").size(), std::string("vpc-0123456789abcdef0").size());
}

}  // namespace
}  // namespace trainyard::api::ec2
