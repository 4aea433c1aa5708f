// Tests regions, zones, instance types and spot prices.
#include <gtest/gtest.h>

#include "ec2/operations.hpp"
#include "operations/testing/operation_caller.hpp"
#include "shapes/ec2.hpp"

namespace trainyard::api::ec2 {
namespace {

namespace aws = shapes::ec2;

using Texts = std::vector<std::string>;

struct AccountWorld : OperationsWorld {
  AccountWorld() : OperationsWorld(add_operations) {}

  template <class Operation>
  typename Operation::Output made(const typename Operation::Input& in) {
    auto out = call<Operation>(in);
    EXPECT_TRUE(out) << (out ? "" : out.failure(*Operation::shape().service).message);
    return out ? *std::move(out) : typename Operation::Output();
  }
};

TEST(AvailabilityZones, ComeFromTheRegion) {
  AccountWorld world;
  const auto zones = *world.made<aws::DescribeAvailabilityZones>({}).availability_zones;
  ASSERT_EQ(zones.size(), 3u);
  EXPECT_EQ(zones[1].zone_name, "eu-west-1b");
  EXPECT_EQ(zones[1].zone_id, "euw1-az2");
  EXPECT_EQ(zones[1].state, "available");
  EXPECT_EQ(world.made<aws::DescribeAvailabilityZones>({.zone_ids = Texts{"euw1-az3"}})
                .availability_zones->front()
                .zone_name,
            "eu-west-1c");
  EXPECT_EQ(world.refusal<aws::DescribeAvailabilityZones>({.zone_names = Texts{"us-east-1a"}}),
            "InvalidParameterValue: Invalid availability zone: [us-east-1a]");
}

TEST(Regions, IncludeTheServersAndItsPeers) {
  AccountWorld world;
  world.settings.regions = {"eu-west-1", "us-east-1"};
  world.settings.remote_regions["ap-south-1"];
  Texts names;
  const auto found = world.made<aws::DescribeRegions>({});
  for (const auto& region : *found.regions) names.push_back(*region.region_name);
  EXPECT_EQ(names, (Texts{"ap-south-1", "eu-west-1", "us-east-1"}));
  EXPECT_EQ(world.refusal<aws::DescribeRegions>({.region_names = Texts{"mars-1"}}),
            "InvalidParameterValue: Invalid region: [mars-1]");
}

TEST(AccountAttributes, NameTheDefaultVpc) {
  AccountWorld world;
  const auto vpc = world.made<aws::DescribeVpcs>({}).vpcs->front();
  const auto found =
      *world.made<aws::DescribeAccountAttributes>({.attribute_names = Texts{"default-vpc"}})
           .account_attributes;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].attribute_values->front().attribute_value, vpc.vpc_id);
}

TEST(Instances, AreAnEmptyList) {
  AccountWorld world;
  EXPECT_TRUE(world.made<aws::DescribeInstances>({}).reservations->empty());
  const std::vector<aws::Filter> filters = {
      {.name = "instance-state-name", .values = Texts{"running"}},
      {.name = "tag:Name", .values = Texts{"worker"}},
      {.name = "network-interface.vpc-id", .values = Texts{"vpc-1"}}};
  const auto found = world.made<aws::DescribeInstances>({.filters = filters, .max_results = 5});
  EXPECT_TRUE(found.reservations->empty());
  EXPECT_FALSE(found.next_token);
  EXPECT_EQ(world.refusal<aws::DescribeInstances>({.instance_ids = Texts{"i-0123456789abcdef0"}}),
            "InvalidInstanceID.NotFound: The instance ID 'i-0123456789abcdef0' does not exist");
  EXPECT_EQ(world.refusal<aws::DescribeInstances>({.instance_ids = Texts{"x"}}),
            "InvalidInstanceID.Malformed: Invalid id: \"x\" (expecting \"i-...\")");
  EXPECT_EQ(world.refusal<aws::DescribeInstances>({.filters = {{{.name = "colour"}}}}),
            "InvalidParameterValue: The filter 'colour' is invalid");
  EXPECT_EQ(world.refusal<aws::DescribeInstances>({.max_results = 4}),
            "InvalidParameterValue: Value ( 4 ) for parameter maxResults is invalid. Expecting a "
            "value between 5 and 1000.");
  EXPECT_EQ(world.refusal<aws::DescribeInstances>(
                {.instance_ids = Texts{"i-0123456789abcdef0"}, .max_results = 5}),
            "InvalidParameterCombination: The parameter instancesSet cannot be used with the "
            "parameter maxResults");
}

TEST(InstanceTypes, HaveTheProcessorsMemoryAndGpusOfTheTable) {
  AccountWorld world;
  const auto types =
      *world.made<aws::DescribeInstanceTypes>({.instance_types = Texts{"m5.large", "g4dn.xlarge"}})
           .instance_types;
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(types[0].instance_type, "g4dn.xlarge");
  EXPECT_EQ(types[0].gpu_info->gpus->front().name, "T4");
  EXPECT_EQ(types[0].gpu_info->gpus->front().count, 1);
  EXPECT_EQ(types[1].v_cpu_info->default_v_cpus, 2);
  EXPECT_EQ(types[1].memory_info->size_in_mi_b, 8'192);
  EXPECT_FALSE(types[1].gpu_info);
  EXPECT_EQ(world.refusal<aws::DescribeInstanceTypes>({.instance_types = Texts{"m5.tiny", "x"}}),
            "InvalidInstanceType: The following supplied instance types do not exist: [m5.tiny, "
            "x]");
}

TEST(InstanceTypes, AreFilteredAndPaged) {
  AccountWorld world;
  aws::DescribeInstanceTypesRequest in{
      .filters = {{{.name = "vcpu-info.default-vcpus", .values = Texts{"96"}},
                   {.name = "instance-type", .values = Texts{"m5*"}}}}};
  Texts names;
  const auto found = world.made<aws::DescribeInstanceTypes>(in);
  for (const auto& type : *found.instance_types) names.push_back(*type.instance_type);
  EXPECT_EQ(names, (Texts{"m5.24xlarge", "m5d.24xlarge"}));
  size_t seen = 0;
  in = {};
  do {
    const auto page = world.made<aws::DescribeInstanceTypes>(in);
    EXPECT_LE(page.instance_types->size(), 100u);
    seen += page.instance_types->size();
    in.next_token = page.next_token;
  } while (in.next_token);
  const auto offerings = world.made<aws::DescribeInstanceTypeOfferings>({});
  EXPECT_EQ(offerings.instance_type_offerings->size(), seen);
  EXPECT_EQ(offerings.instance_type_offerings->front().location, "eu-west-1");
}

TEST(InstanceTypes, AreOfferedInEveryZone) {
  AccountWorld world;
  const auto offered = world.made<aws::DescribeInstanceTypeOfferings>(
      {.location_type = "availability-zone",
       .filters = {{{.name = "instance-type", .values = Texts{"c5.large"}}}}});
  Texts zones;
  for (const auto& each : *offered.instance_type_offerings) zones.push_back(*each.location);
  EXPECT_EQ(zones, (Texts{"eu-west-1a", "eu-west-1b", "eu-west-1c"}));
}

TEST(SpotPrices, ComeFromTheConfiguration) {
  AccountWorld world;
  world.settings.prices = {};
  world.settings.prices.set("eu-west-1", "ml.m5.large", {0.115, 0.0345});
  world.settings.prices.set("eu-west-1", "c5.large", {0.1, 0.02});
  world.settings.prices.set("us-east-1", "c5.xlarge", {0.2, 0.04});
  const auto all = *world.made<aws::DescribeSpotPriceHistory>({}).spot_price_history;
  ASSERT_EQ(all.size(), 6u);  // two types in three zones
  const auto one =
      *world
           .made<aws::DescribeSpotPriceHistory>({.start_time = in_memory::kStart,
                                                 .instance_types = Texts{"m5.large"},
                                                 .product_descriptions = Texts{"Linux/UNIX"},
                                                 .availability_zone = "eu-west-1b"})
           .spot_price_history;
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].spot_price, "0.034500");
  EXPECT_EQ(one[0].availability_zone_id, "euw1-az2");
  EXPECT_EQ(one[0].timestamp, in_memory::kStart);
  EXPECT_TRUE(world.made<aws::DescribeSpotPriceHistory>({.product_descriptions = Texts{"Windows"}})
                  .spot_price_history->empty());
  EXPECT_EQ(world.refusal<aws::DescribeSpotPriceHistory>({.availability_zone = "us-east-1a"}),
            "InvalidParameterValue: Invalid availability zone: [us-east-1a]");
}

}  // namespace
}  // namespace trainyard::api::ec2
