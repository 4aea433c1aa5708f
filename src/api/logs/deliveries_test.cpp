#include "log_routing/deliveries.hpp"

#include "log_routing/router.hpp"
#include "logs/operations.hpp"
#include "operations/testing/operation_caller.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;

using Tags = std::map<std::string, std::string>;
using Texts = std::vector<std::string>;

const std::string kArns = "arn:aws:logs:eu-west-1:123456789012:";
const std::string kStream = "arn:aws:kinesis:eu-west-1:123456789012:stream/s";

Result<int> answer(const log_routing::Webhook&, const std::string&) { return 200; }

struct DeliveryOperationsWorld : OperationsWorld {
  std::unique_ptr<log_routing::LogRouter> router = *log_routing::LogRouter::start(
      *logs, *metrics, clock, answer,
      {.account = "123456789012",
       .webhooks = {{"hook", "http://127.0.0.1:1/", "secret", ""},
                    {"stream", "http://127.0.0.1:1/", "", "", {kStream}}}});
  std::unique_ptr<log_routing::Deliveries> deliveries = *log_routing::Deliveries::start(
      *logs, *objects, router->targets(), {}, answer, clock, random, {.object_interval = 0ms});

  DeliveryOperationsWorld() {
    services.log_router = router.get();
    router->set_deliveries(deliveries.get());
    add_operations(table, settings, services);
    for (const char* group : {"g", "to"})
      EXPECT_TRUE(logs->ensure_stream({"eu-west-1", group, "s"}));
    EXPECT_TRUE(objects->create_bucket("bucket", "eu-west-1"));
  }
  Outcome<aws::PutDestinationResponse> put(const std::string& name, const std::string& target) {
    return call<aws::PutDestination>(
        {.destination_name = name, .target_arn = target, .role_arn = "role"});
  }
  std::string refused(const std::string& name, const std::string& target) {
    return refusal<aws::PutDestination>(
        {.destination_name = name, .target_arn = target, .role_arn = "role"});
  }
};

TEST(DestinationOperations, RouteSubscriptions) {
  DeliveryOperationsWorld world;
  const auto made = world.put("d", kArns + "log-group:to:*");
  ASSERT_TRUE(made);
  EXPECT_EQ((*made).destination->arn, kArns + "destination:d");
  ASSERT_TRUE(world.call<aws::PutSubscriptionFilter>({.log_group_name = "g",
                                                      .filter_name = "f",
                                                      .filter_pattern = "",
                                                      .destination_arn = kArns + "destination:d"}));
  world.router->enqueue({"eu-west-1", "g", "s"}, {{world.clock.now(), {}, "one"}});
  ASSERT_TRUE(world.router->drain(120s));
  EXPECT_EQ(world.logs->read({"eu-west-1", "to", "s"}, {})->events.at(0).message, "one");
  ASSERT_TRUE(world.put("d", kStream)) << "the target may change";
  ASSERT_TRUE(world.call<aws::PutDestinationPolicy>(
      {.destination_name = "d", .access_policy = R"({"Version": "2012-10-17"})"}));
  auto listed = world.call<aws::DescribeDestinations>({.destination_name_prefix = "d"});
  ASSERT_EQ((*listed).destinations->size(), 1u);
  EXPECT_EQ((*listed).destinations->at(0).target_arn, kStream);
  EXPECT_EQ((*listed).destinations->at(0).access_policy, R"({"Version": "2012-10-17"})");
  ASSERT_TRUE(world.call<aws::DeleteDestination>({.destination_name = "d"}));
  EXPECT_EQ(world.refusal<aws::DeleteDestination>({.destination_name = "d"}),
            "ResourceNotFoundException: The specified destination does not exist.");
  EXPECT_EQ(
      world.refusal<aws::PutDestinationPolicy>({.destination_name = "d", .access_policy = "{}"}),
      "InvalidParameterException: The specified destination does not exist.");
}

TEST(DestinationOperations, RejectUnknownTargets) {
  DeliveryOperationsWorld world;
  for (const std::string& target :
       {std::string("http://169.254.169.254/"), kArns + "destination:d", kArns + "destination:hook",
        std::string("arn:aws:kinesis:eu-west-1:123456789012:stream/other"),
        std::string("arn:aws:logs:eu-west-1:210987654321:log-group:to")})
    EXPECT_TRUE(world.refused("d", target).starts_with("InvalidParameterException: ")) << target;
  EXPECT_TRUE(world.refused("d", kArns + "destination:stream").starts_with("InvalidParameter"));
  EXPECT_TRUE(world.refused("d", "arn:aws:logs:us-east-1:123456789012:destination:hook")
                  .starts_with("InvalidParameterException: "))
      << "a webhook's ARN of another region";
  EXPECT_TRUE(world.refused("hook", kStream).starts_with("InvalidParameterException: "))
      << "a name of the configuration";
  aws::PutSubscriptionFilterRequest in{.log_group_name = "g",
                                       .filter_name = "f",
                                       .filter_pattern = "",
                                       .destination_arn = kArns + "log-group:g"};
  EXPECT_TRUE(world.refusal<aws::PutSubscriptionFilter>(in).starts_with("InvalidParameter"));
  in.destination_arn = kArns + "log-group:none";
  EXPECT_EQ(world.refusal<aws::PutSubscriptionFilter>(in),
            "ResourceNotFoundException: The specified log group does not exist.");
}

TEST(DeliveryOperations, CreateAndDescribeADelivery) {
  DeliveryOperationsWorld world;
  EXPECT_TRUE(
      world
          .refusal<aws::PutDeliverySource>(
              {.name = "s", .resource_arn = "arn:aws:s3:::bucket", .log_type = "ACCESS_LOGS"})
          .starts_with("ResourceNotFoundException: "));
  const auto source = world.call<aws::PutDeliverySource>({.name = "s",
                                                          .resource_arn = kArns + "log-group:g",
                                                          .log_type = "APPLICATION_LOGS",
                                                          .tags = Tags{{"a", "b"}}});
  ASSERT_TRUE(source);
  EXPECT_EQ((*source).delivery_source->service, "logs");
  EXPECT_EQ((*source).delivery_source->tags->at("a"), "b");
  ASSERT_TRUE(world.call<aws::PutDeliveryDestination>(
      {.name = "d",
       .output_format = "json",
       .delivery_destination_configuration =
           aws::DeliveryDestinationConfiguration{"arn:aws:s3:::bucket"}}));
  EXPECT_TRUE(world
                  .refusal<aws::PutDeliveryDestination>(
                      {.name = "e",
                       .output_format = "parquet",
                       .delivery_destination_configuration =
                           aws::DeliveryDestinationConfiguration{"arn:aws:s3:::bucket"}})
                  .starts_with("ValidationException: "));
  const std::string destination = kArns + "delivery-destination:d";
  const auto made = world.call<aws::CreateDelivery>(
      {.delivery_source_name = "s",
       .delivery_destination_arn = destination,
       .record_fields = Texts{"message"},
       .s3_delivery_configuration = aws::S3DeliveryConfiguration{"{yyyy}", true}});
  ASSERT_TRUE(made);
  const aws::Delivery& delivery = *(*made).delivery;
  EXPECT_EQ(delivery.delivery_destination_type, "S3");
  EXPECT_EQ(delivery.delivery_destination_arn, destination);
  EXPECT_EQ(delivery.s3_delivery_configuration->suffix_path, "{yyyy}");
  EXPECT_TRUE(world
                  .refusal<aws::CreateDelivery>(
                      {.delivery_source_name = "s", .delivery_destination_arn = destination})
                  .starts_with("ConflictException: "));
  EXPECT_EQ(world.refusal<aws::CreateDelivery>(
                {.delivery_source_name = "none", .delivery_destination_arn = destination}),
            "ResourceNotFoundException: Requested Delivery Source does not exist in this account.");
  const auto id = *delivery.id;
  ASSERT_TRUE(world.call<aws::UpdateDeliveryConfiguration>(
      {.id = id, .record_fields = Texts{"timestamp"}}));
  const auto shown = world.call<aws::GetDelivery>({.id = id});
  EXPECT_EQ((*shown).delivery->record_fields->at(0), "timestamp");
  EXPECT_EQ((*world.call<aws::DescribeDeliveries>({})).deliveries->size(), 1u);
  EXPECT_TRUE(
      world.refusal<aws::DeleteDeliverySource>({.name = "s"}).starts_with("ConflictException: "));
  ASSERT_TRUE(world.call<aws::DeleteDelivery>({.id = id}));
  ASSERT_TRUE(world.call<aws::DeleteDeliverySource>({.name = "s"}));
  EXPECT_EQ(world.refusal<aws::GetDelivery>({.id = id}),
            "ResourceNotFoundException: Requested Delivery does not exist in this account.");
}

TEST(DeliveryOperations, RejectInvalidTokens) {
  DeliveryOperationsWorld world;
  const std::string refusal = "ValidationException: The specified nextToken is invalid.";
  EXPECT_EQ(world.refusal<aws::DescribeDeliveries>({.next_token = "bad"}), refusal);
  EXPECT_EQ(world.refusal<aws::DescribeDeliverySources>({.next_token = "bad"}), refusal);
  EXPECT_EQ(world.refusal<aws::DescribeDeliveryDestinations>({.next_token = "bad"}), refusal);
}

TEST(DeliveryOperations, StorePoliciesAndTags) {
  DeliveryOperationsWorld world;
  ASSERT_TRUE(world.call<aws::PutDeliveryDestination>(
      {.name = "d",
       .delivery_destination_configuration =
           aws::DeliveryDestinationConfiguration{kArns + "log-group:to"},
       .delivery_destination_type = "CWL"}));
  ASSERT_TRUE(world.call<aws::PutDeliveryDestinationPolicy>(
      {.delivery_destination_name = "d", .delivery_destination_policy = "{}"}));
  auto policy = world.call<aws::GetDeliveryDestinationPolicy>({.delivery_destination_name = "d"});
  EXPECT_EQ((*policy).policy->delivery_destination_policy, "{}");
  ASSERT_TRUE(world.call<aws::DeleteDeliveryDestinationPolicy>({.delivery_destination_name = "d"}));
  policy = world.call<aws::GetDeliveryDestinationPolicy>({.delivery_destination_name = "d"});
  EXPECT_FALSE((*policy).policy->delivery_destination_policy);
  ASSERT_TRUE(world.put("named", kArns + "log-group:to"));
  for (const std::string& arn : {kArns + "delivery-destination:d", kArns + "destination:named"}) {
    ASSERT_TRUE(world.call<aws::TagResource>({.resource_arn = arn, .tags = Tags{{"a", "b"}}}));
    EXPECT_EQ((*world.call<aws::ListTagsForResource>({.resource_arn = arn})).tags->at("a"), "b");
    ASSERT_TRUE(world.call<aws::UntagResource>({.resource_arn = arn, .tag_keys = Texts{"a"}}));
    EXPECT_TRUE((*world.call<aws::ListTagsForResource>({.resource_arn = arn})).tags->empty());
  }
  EXPECT_EQ(world.refusal<aws::ListTagsForResource>({.resource_arn = kArns + "delivery:none"}),
            "ResourceNotFoundException: The specified resource does not exist.");
}

}  // namespace
}  // namespace trainyard::api::logs
