#include "ec2/network_records.hpp"

#include <gtest/gtest.h>

namespace trainyard::api::ec2 {
namespace {

const std::string kRegion = "eu-west-1";

MakeId counted() {
  return [made = 0](std::string_view prefix) mutable {
    return std::string(prefix) + std::to_string(++made);
  };
}

// Makes a region with resources of every kind.
Networks full() {
  Networks networks;
  const MakeId make_id = counted();
  Vpc& vpc = add_default_vpc(networks, kRegion, make_id);
  vpc.tags = {{"team", "vision"}};
  vpc.usage_metrics = true;
  SecurityGroup& group = networks.groups.begin()->second;
  Rule rule;
  rule.id = "sgr-9";
  rule.protocol = "tcp";
  rule.from = 22;
  rule.to = 23;
  rule.cidr6 = "::/0";
  rule.description = "ssh";
  rule.tags = {{"a", "b"}};
  group.rules.push_back(rule);
  networks.route_tables.begin()->second.associations.push_back(
      {"rtbassoc-9", networks.subnets.begin()->first});
  return networks;
}

Networks read(const std::vector<domain::RecordWrite>& writes, Networks networks = {}) {
  for (const auto& write : writes)
    EXPECT_TRUE(add_record(networks, kRegion, write.key, *write.document)) << dump(*write.document);
  return networks;
}

TEST(NetworkRecords, AreReadBack) {
  const Networks networks = full();
  const Networks again = read(difference(kRegion, {}, networks));
  EXPECT_TRUE(difference(kRegion, networks, again).empty());
  EXPECT_EQ(again.vpcs, networks.vpcs);
  EXPECT_EQ(again.subnets, networks.subnets);
  EXPECT_EQ(again.groups, networks.groups);
  EXPECT_EQ(again.gateways, networks.gateways);
  EXPECT_EQ(again.route_tables, networks.route_tables);
}

TEST(NetworkRecords, HaveOneRecordForEachResource) {
  const auto writes = difference(kRegion, {}, full());
  ASSERT_EQ(writes.size(), 7u);  // VPC, three subnets, group, gateway, route table
  EXPECT_EQ(writes[0].key, (domain::RecordKey{"ec2_vpc", "eu-west-1/vpc-1"}));
  EXPECT_EQ(dump(*writes[0].document),
            R"({"association":"vpc-cidr-assoc-2","cidr":"172.31.0.0/16","default":true,)"
            R"("dns_hostnames":true,"dns_support":true,"tags":{"team":"vision"},)"
            R"("tenancy":"default","usage_metrics":true})");
  EXPECT_EQ(writes[1].key, (domain::RecordKey{"ec2_subnet", "eu-west-1/subnet-10"}));
  EXPECT_EQ(dump(*writes[1].document),
            R"({"cidr":"172.31.32.0/20","default_for_zone":true,"public_addresses":true,)"
            R"("vpc":"vpc-1","zone":"eu-west-1c"})");
  EXPECT_EQ(writes[4].key, (domain::RecordKey{"ec2_security_group", "eu-west-1/sg-3"}));
  EXPECT_EQ(dump(*writes[4].document),
            R"({"description":"default VPC security group","name":"default","rules":[)"
            R"({"egress":false,"from":-1,"group":"sg-3","id":"sgr-4","protocol":"-1","to":-1},)"
            R"({"cidr":"0.0.0.0/0","egress":true,"from":-1,"id":"sgr-5","protocol":"-1","to":-1},)"
            R"({"cidr6":"::/0","description":"ssh","egress":false,"from":22,"id":"sgr-9",)"
            R"("protocol":"tcp","tags":{"a":"b"},"to":23}],"vpc":"vpc-1"})");
  EXPECT_EQ(writes[5].key, (domain::RecordKey{"ec2_internet_gateway", "eu-west-1/igw-11"}));
  EXPECT_EQ(dump(*writes[5].document), R"({"vpc":"vpc-1"})");
  EXPECT_EQ(writes[6].key, (domain::RecordKey{"ec2_route_table", "eu-west-1/rtb-6"}));
  EXPECT_EQ(dump(*writes[6].document),
            R"({"associations":[{"id":"rtbassoc-9","subnet":"subnet-10"}],)"
            R"("main_association":"rtbassoc-7","routes":[{"destination":"0.0.0.0/0",)"
            R"("gateway":"igw-11"}],"vpc":"vpc-1"})");
}

TEST(NetworkRecords, DifferenceHasOnlyChangedRecords) {
  const Networks before = full();
  Networks after = before;
  after.vpcs.begin()->second.tags.clear();
  const std::string subnet = after.subnets.begin()->first;
  after.subnets.erase(subnet);
  const auto writes = difference(kRegion, before, after);
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[0].key.second, "eu-west-1/vpc-1");
  EXPECT_TRUE(writes[0].document);
  EXPECT_EQ(writes[1].key.second, "eu-west-1/" + subnet);
  EXPECT_FALSE(writes[1].document);
}

TEST(NetworkRecords, IgnoreOtherRegionsAndKinds) {
  Networks networks;
  const Json vpc = *difference(kRegion, {}, full())[0].document;
  EXPECT_TRUE(add_record(networks, kRegion, {"ec2_vpc", "eu-west-10/vpc-1"}, vpc));
  EXPECT_TRUE(add_record(networks, kRegion, {"ec2_vpc", "eu-west-1"}, vpc));
  EXPECT_TRUE(add_record(networks, kRegion, {"user", "eu-west-1/vpc-1"}, vpc));
  EXPECT_TRUE(networks.vpcs.empty());
}

TEST(NetworkRecords, RejectRecordsThatNoOperationWrites) {
  Networks networks;
  const auto error = [&](const std::string& kind, Json document) {
    const auto added = add_record(networks, kRegion, {kind, "eu-west-1/x"}, document);
    return added ? std::string() : added.error().message;
  };
  Json vpc = *difference(kRegion, {}, full())[0].document;
  vpc["cidr"] = "10.0.0.0/99";
  EXPECT_EQ(error("ec2_vpc", vpc), "invalid CIDR block: '10.0.0.0/99'");
  vpc.erase("cidr");
  EXPECT_EQ(error("ec2_vpc", vpc), "'cidr' is missing");
  Json subnet = *difference(kRegion, {}, full())[1].document;
  subnet["zone"] = "";
  EXPECT_EQ(error("ec2_subnet", subnet), "a subnet must have an availability zone");
  EXPECT_TRUE(networks.vpcs.empty() && networks.subnets.empty());
}

TEST(NetworkRecords, DropResourcesOfAnUnreadableVpc) {
  Networks networks = full();
  const std::string other = networks.subnets.begin()->first;
  networks.subnets[other].vpc = "vpc-unreadable";
  InternetGateway detached;
  detached.id = "igw-detached";
  networks.gateways[detached.id] = detached;
  drop_orphans(networks);
  EXPECT_FALSE(networks.subnets.contains(other));
  EXPECT_EQ(networks.subnets.size(), 2u);
  EXPECT_TRUE(networks.gateways.contains(detached.id));
}

}  // namespace
}  // namespace trainyard::api::ec2
