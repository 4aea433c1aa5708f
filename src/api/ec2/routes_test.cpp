// Tests internet gateways, route tables and tags.
#include <gtest/gtest.h>

#include "ec2/operations.hpp"
#include "operations/testing/operation_caller.hpp"
#include "shapes/ec2.hpp"

namespace trainyard::api::ec2 {
namespace {

namespace aws = shapes::ec2;

using Texts = std::vector<std::string>;

struct RoutesWorld : OperationsWorld {
  RoutesWorld() : OperationsWorld(add_operations) {}

  template <class Operation>
  typename Operation::Output made(const typename Operation::Input& in) {
    auto out = call<Operation>(in);
    EXPECT_TRUE(out) << (out ? "" : out.failure(*Operation::shape().service).message);
    return out ? *std::move(out) : typename Operation::Output();
  }
  std::string gateway() {
    return *made<aws::CreateInternetGateway>({}).internet_gateway->internet_gateway_id;
  }
  std::string make_vpc() {
    return *made<aws::CreateVpc>({.cidr_block = "10.0.0.0/16"}).vpc->vpc_id;
  }
  aws::RouteTable table(const std::string& id) {
    return made<aws::DescribeRouteTables>({.route_table_ids = Texts{id}}).route_tables->front();
  }

  const std::string vpc = make_vpc();
};

TEST(InternetGateways, AreAttachedToOneVpc) {
  RoutesWorld world;
  const std::string gateway = world.gateway(), other = world.gateway();
  const aws::AttachInternetGatewayRequest attach{.internet_gateway_id = gateway,
                                                 .vpc_id = world.vpc};
  world.made<aws::AttachInternetGateway>(attach);
  EXPECT_EQ(world.refusal<aws::AttachInternetGateway>(attach),
            "Resource.AlreadyAssociated: resource " + gateway + " is already attached to network " +
                world.vpc);
  EXPECT_EQ(
      world.refusal<aws::AttachInternetGateway>(
          {.internet_gateway_id = other, .vpc_id = world.vpc}),
      "InvalidParameterValue: Network " + world.vpc + " already has an internet gateway attached");
  EXPECT_EQ(world.refusal<aws::DeleteInternetGateway>({.internet_gateway_id = gateway}),
            "DependencyViolation: The internetGateway '" + gateway +
                "' has dependencies and cannot be deleted.");
  EXPECT_EQ(world.refusal<aws::DetachInternetGateway>(
                {.internet_gateway_id = other, .vpc_id = world.vpc}),
            "Gateway.NotAttached: resource " + other + " is not attached to network " + world.vpc);
  const auto found = world.made<aws::DescribeInternetGateways>(
      {.filters = {{{.name = "attachment.vpc-id", .values = Texts{world.vpc}}}}});
  ASSERT_EQ(found.internet_gateways->size(), 1u);
  EXPECT_EQ(found.internet_gateways->front().internet_gateway_id, gateway);
  world.made<aws::DetachInternetGateway>({.internet_gateway_id = gateway, .vpc_id = world.vpc});
  world.made<aws::DeleteInternetGateway>({.internet_gateway_id = gateway});
}

TEST(RouteTables, RouteToTheGatewayOfTheirVpc) {
  RoutesWorld world;
  const std::string gateway = world.gateway();
  const std::string table =
      *world.made<aws::CreateRouteTable>({.vpc_id = world.vpc}).route_table->route_table_id;
  const aws::CreateRouteRequest route{
      .route_table_id = table, .destination_cidr_block = "0.0.0.0/0", .gateway_id = gateway};
  EXPECT_EQ(world.refusal<aws::CreateRoute>(route), "InvalidParameterValue: route table " + table +
                                                        " and network gateway " + gateway +
                                                        " belong to different networks");
  world.made<aws::AttachInternetGateway>({.internet_gateway_id = gateway, .vpc_id = world.vpc});
  EXPECT_EQ(world.made<aws::CreateRoute>(route).return_, true);
  EXPECT_EQ(world.refusal<aws::CreateRoute>(route),
            "RouteAlreadyExists: The route identified by 0.0.0.0/0 already exists.");
  auto routes = *world.table(table).routes;
  ASSERT_EQ(routes.size(), 2u);
  EXPECT_EQ(routes[0].gateway_id, "local");
  EXPECT_EQ(routes[0].destination_cidr_block, "10.0.0.0/16");
  EXPECT_EQ(routes[1].state, "active");
  world.made<aws::DetachInternetGateway>({.internet_gateway_id = gateway, .vpc_id = world.vpc});
  EXPECT_EQ(world.table(table).routes->at(1).state, "blackhole");
  const aws::DeleteRouteRequest remove{.route_table_id = table,
                                       .destination_cidr_block = "0.0.0.0/0"};
  world.made<aws::DeleteRoute>(remove);
  EXPECT_EQ(
      world.refusal<aws::DeleteRoute>(remove),
      "InvalidRoute.NotFound: no route with destination-cidr-block 0.0.0.0/0 in route table " +
          table);
  EXPECT_EQ(world.refusal<aws::CreateRoute>({.route_table_id = table,
                                             .destination_cidr_block = "1.0.0.0/8",
                                             .nat_gateway_id = "nat-1"}),
            "UnsupportedOperation: This server supports routes to internet gateways (GatewayId) "
            "only");
}

TEST(RouteTables, BelongToSubnets) {
  RoutesWorld world;
  const std::string table =
      *world.made<aws::CreateRouteTable>({.vpc_id = world.vpc}).route_table->route_table_id;
  const std::string subnet =
      *world.made<aws::CreateSubnet>({.cidr_block = "10.0.0.0/24", .vpc_id = world.vpc})
           .subnet->subnet_id;
  const std::string association =
      *world.made<aws::AssociateRouteTable>({.subnet_id = subnet, .route_table_id = table})
           .association_id;
  EXPECT_EQ(world.table(table).associations->front().subnet_id, subnet);
  EXPECT_EQ(world.refusal<aws::AssociateRouteTable>({.subnet_id = subnet, .route_table_id = table}),
            "Resource.AlreadyAssociated: the specified association for route table " + table +
                " conflicts with an existing association");
  EXPECT_EQ(world.refusal<aws::DeleteRouteTable>({.route_table_id = table}),
            "DependencyViolation: The routeTable '" + table +
                "' has dependencies and cannot be deleted.");
  world.made<aws::DisassociateRouteTable>({.association_id = association});
  EXPECT_EQ(
      world.refusal<aws::DisassociateRouteTable>({.association_id = association}),
      "InvalidAssociationID.NotFound: The association ID '" + association + "' does not exist");
  world.made<aws::AssociateRouteTable>({.subnet_id = subnet, .route_table_id = table});
  world.made<aws::DeleteSubnet>({.subnet_id = subnet});
  EXPECT_TRUE(world.table(table).associations->empty());
  world.made<aws::DeleteRouteTable>({.route_table_id = table});
  const auto main = world.made<aws::DescribeRouteTables>(
      {.filters = {{{.name = "vpc-id", .values = Texts{world.vpc}},
                    {.name = "association.main", .values = Texts{"true"}}}}});
  ASSERT_EQ(main.route_tables->size(), 1u);
  EXPECT_EQ(world.refusal<aws::DeleteRouteTable>(
                {.route_table_id = main.route_tables->front().route_table_id}),
            "DependencyViolation: The routeTable '" + *main.route_tables->front().route_table_id +
                "' has dependencies and cannot be deleted.");
}

TEST(Tags, AreOnEveryKindOfResource) {
  RoutesWorld world;
  const std::string gateway = world.gateway();
  world.made<aws::CreateTags>(
      {.resources = Texts{world.vpc, gateway}, .tags = {{{.key = "team", .value = "vision"}}}});
  const auto found =
      *world.made<aws::DescribeTags>({.filters = {{{.name = "key", .values = Texts{"team"}}}}})
           .tags;
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].resource_type, "internet-gateway");
  EXPECT_EQ(found[1].resource_type, "vpc");
  world.made<aws::DeleteTags>(
      {.resources = Texts{gateway}, .tags = {{{.key = "team", .value = "another"}}}});
  EXPECT_EQ(world.made<aws::DescribeTags>({}).tags->size(), 2u);
  world.made<aws::DeleteTags>({.resources = Texts{gateway}, .tags = {{{.key = "team"}}}});
  world.made<aws::DeleteTags>({.resources = Texts{world.vpc}});
  EXPECT_TRUE(world.made<aws::DescribeTags>({}).tags->empty());
}

TEST(Tags, AreRejectedWithAwsTexts) {
  RoutesWorld world;
  const auto refusal = [&](const std::string& id, const std::string& key) {
    return world.refusal<aws::CreateTags>(
        {.resources = Texts{id}, .tags = {{{.key = key, .value = "x"}}}});
  };
  EXPECT_EQ(refusal("subnet-0123456789abcdef0", "a"),
            "InvalidSubnetID.NotFound: The subnet ID 'subnet-0123456789abcdef0' does not exist");
  EXPECT_EQ(refusal("ami-12345678", "a"), "InvalidID: The ID 'ami-12345678' is not valid");
  EXPECT_EQ(refusal(world.vpc, "aws:mine"),
            "InvalidParameterValue: Value (aws:mine) for parameter key is invalid. Tag keys "
            "starting with 'aws:' are reserved for internal use.");
  aws::CreateTagsRequest many{.resources = Texts{world.vpc}, .tags = std::vector<aws::Tag>()};
  for (int i = 0; i <= 50; ++i) many.tags->push_back({.key = std::to_string(i), .value = ""});
  EXPECT_EQ(world.refusal<aws::CreateTags>(many),
            "TagLimitExceeded: The maximum number of tags per resource is 50");
  EXPECT_EQ(world.refusal<aws::CreateVpc>(
                {.cidr_block = "10.0.0.0/16",
                 .tag_specifications = {{{.resource_type = "subnet", .tags = {}}}}}),
            "InvalidParameterValue: 'subnet' is not a valid taggable resource type for this "
            "operation.");
}

}  // namespace
}  // namespace trainyard::api::ec2
