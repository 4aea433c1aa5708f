#include "log_routing/delivery_catalogue.hpp"

#include "log_routing/delivery_format.hpp"
#include "log_routing/testing/delivery_world.hpp"

namespace trainyard::log_routing {
namespace {

struct CatalogueWorld {
  observe::TemporaryDirectory directory;
  DeliveryWorld world{directory.path()};
  CatalogueWorld() { world.start(); }
  DeliveryCatalogue& catalogue() { return world.all->catalogue(); }
  Result<void> put_source(const std::string& arn, const std::string& type = "APPLICATION_LOGS",
                          const std::string& name = "source") {
    return catalogue().put_source(kDeliveryRegion, name, {.resource_arn = arn, .log_type = type});
  }
};

TEST(DeliveryCatalogue, AcceptsOnlySourcesWithLogsOnThisServer) {
  CatalogueWorld all;
  ASSERT_OK(all.put_source(kGroupArns + "g"));
  EXPECT_EQ(all.put_source(kGroupArns + "to").error().kind, Kind::conflict);
  EXPECT_EQ(all.put_source(kGroupArns + "none", "APPLICATION_LOGS", "b").error().kind,
            Kind::not_found);
  EXPECT_EQ(all.put_source(kGroupArns + "g", "ACCESS_LOGS", "b").error().kind, Kind::invalid);
  EXPECT_EQ(all.put_source("arn:aws:s3:::bucket", "APPLICATION_LOGS", "b").error().kind,
            Kind::not_found);
  EXPECT_EQ(all.put_source(kExternalArn, "EVENT_LOGS", "b").error().kind, Kind::invalid);
  ASSERT_OK(all.put_source(kExternalArn, "ACCESS_LOGS", "b"));
  const std::string job = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/";
  EXPECT_EQ(all.put_source(job + "none", "APPLICATION_LOGS", "c").error().kind, Kind::not_found);
  ASSERT_OK(all.world.logs->ensure_stream(
      {kDeliveryRegion, "/aws/sagemaker/TrainingJobs", "one/algo-1-1"}));
  ASSERT_OK(all.put_source(job + "one", "APPLICATION_LOGS", "c"));
  EXPECT_EQ(all.catalogue().sources(kDeliveryRegion)->size(), 3u);
}

TEST(DeliveryCatalogue, RejectsChangesOfADestinationsFormatOrType) {
  CatalogueWorld all;
  const auto put = [&](const std::string& arn, std::optional<DeliveryFormat> format) {
    return all.catalogue().put_destination(kDeliveryRegion, "d",
                                           {.resource_arn = arn, .format = format});
  };
  ASSERT_OK(put("arn:aws:s3:::bucket", DeliveryFormat::json));
  EXPECT_EQ(put("arn:aws:s3:::bucket", DeliveryFormat::plain).error().kind, Kind::invalid);
  EXPECT_EQ(put(kGroupArns + "to", {}).error().kind, Kind::invalid);
  EXPECT_EQ(put("arn:aws:s3:::other/prefix", {})->format, DeliveryFormat::json);
  for (const std::string arn :
       {"", "arn:aws:s3:::", "http://169.254.169.254/", "arn:aws:logs:eu-west-1:1:log-group:g",
        "arn:aws:firehose:eu-west-1:123456789012:deliverystream/other",
        "arn:aws:logs:eu-west-1:123456789012:destination:other"})
    EXPECT_EQ(put(arn, {}).error().kind, Kind::invalid) << arn;
  EXPECT_EQ(put("arn:aws:s3:::bucket/" + std::string(600, 'x'), {}).error().kind, Kind::invalid);
  const auto other_prefix = put("arn:aws:s3:::bucket//secret", {});
  ASSERT_FALSE(other_prefix);
  EXPECT_NE(other_prefix.error().message.find("begins with '/'"), std::string::npos)
      << other_prefix.error().message;
}

TEST(DeliveryCatalogue, AllowsOneDeliveryOfEachTypeForASource) {
  CatalogueWorld all;
  const auto id = all.world.deliver("arn:aws:s3:::bucket");
  ASSERT_OK(id);
  EXPECT_EQ(all.world.deliver("arn:aws:s3:::bucket/other").error().kind, Kind::conflict);
  EXPECT_EQ(all.catalogue().remove_source(kDeliveryRegion, "g").error().kind, Kind::conflict);
  const auto destinations = all.catalogue().destinations(kDeliveryRegion);
  ASSERT_OK(destinations);
  const auto delivery = all.catalogue().delivery(kDeliveryRegion, *id);
  EXPECT_EQ(all.catalogue().remove_destination(kDeliveryRegion, delivery->destination).error().kind,
            Kind::conflict);
  ASSERT_OK(all.catalogue().remove(kDeliveryRegion, *id));
  EXPECT_EQ(all.catalogue().remove(kDeliveryRegion, *id).error().kind, Kind::not_found);
  EXPECT_TRUE(all.catalogue().remove_source(kDeliveryRegion, "g"));
  EXPECT_TRUE(all.catalogue().remove_destination(kDeliveryRegion, delivery->destination));
  EXPECT_EQ(all.world.deliver("arn:aws:s3:::absent").error().kind, Kind::not_found);
}

TEST(DeliveryCatalogue, RejectsCyclesOfDeliveries) {
  CatalogueWorld all;
  ASSERT_OK(all.world.logs->ensure_stream({kDeliveryRegion, "third", "s"}));
  EXPECT_EQ(all.world.deliver(kGroupArns + "g").error().kind, Kind::invalid) << "itself";
  ASSERT_OK(all.world.deliver(kGroupArns + "to"));
  const auto second = all.world.deliver(kGroupArns + "third", {}, {}, "to");
  ASSERT_OK(second);
  EXPECT_EQ(all.world.deliver(kGroupArns + "g", {}, {}, "third").error().kind, Kind::invalid);
  EXPECT_EQ(all.world.deliver(kGroupArns + "to", {}, {}, "third").error().kind, Kind::invalid);
  const auto destination = all.catalogue().delivery(kDeliveryRegion, *second)->destination;
  EXPECT_EQ(all.catalogue()
                .put_destination(kDeliveryRegion, destination, {.resource_arn = kGroupArns + "g"})
                .error()
                .kind,
            Kind::invalid)
      << "a change of a destination's target";
}

TEST(DeliveryCatalogue, ChecksOptions) {
  CatalogueWorld all;
  for (const std::string suffix : {"{", "}", "{other}", "a/{yyyy}/{", "a\nb", "{yyyy}}"})
    EXPECT_EQ(all.world.deliver("arn:aws:s3:::bucket", {.suffix = suffix}).error().kind,
              Kind::invalid)
        << suffix;
  const auto repeated = all.world.deliver("arn:aws:s3:::bucket", {.fields = {"a", "b", "a"}});
  ASSERT_FALSE(repeated);
  EXPECT_EQ(repeated.error().message, "Invalid recordFields: a is repeated.");
  const auto id = all.world.deliver("arn:aws:s3:::bucket", {.suffix = "{yyyy}-{MM}/{dd}/{HH}"});
  ASSERT_OK(id);
  EXPECT_EQ(
      all.catalogue()
          .update(kDeliveryRegion, *id, [](DeliveryOptions& options) { options.suffix = "{no}"; })
          .error()
          .kind,
      Kind::invalid);
  EXPECT_EQ(all.catalogue().delivery(kDeliveryRegion, *id)->options.suffix,
            "{yyyy}-{MM}/{dd}/{HH}");
}

TEST(DeliveryFormat, SuffixReplacesOnlyTheFixedPartOfItsAccount) {
  const auto folder = [](const std::string& suffix, bool hive) {
    const std::string key = object_key({.account = "1",
                                        .service = "logs",
                                        .region = "r",
                                        .delivery = "d",
                                        .suffix = suffix,
                                        .hive_path = hive,
                                        .stream = "s"});
    return key.substr(0, key.rfind('/'));
  };
  EXPECT_EQ(folder("AWSLogs/{account-id}/web", false), "AWSLogs/1/web");
  EXPECT_EQ(folder("AWSLogs/{account-id}/web", true), "AWSLogs/aws-account-id=1/web");
  EXPECT_EQ(folder("AWSLogs/1/web", true), "AWSLogs/1/web");
  for (const std::string suffix : {"AWSLogs/2/web", "AWSLogs/12/web", "AWSLogs/other",
                                   "AWSLogs/aws-account-id=2/web", "AWSLogs/1"})
    EXPECT_EQ(folder(suffix, false), "AWSLogs/1/logs/" + suffix);
}

// A former implementation moved the rest of the text at each replacement, which took minutes for a
// large message.
TEST(DeliveryFormat, ReplacesDelimitersInLongValuesInOnePass) {
  const auto record = [](const std::string& message, const std::string& delimiter) {
    return record_text({"r", "g", "s"}, {{}, {}, message}, DeliveryFormat::plain,
                       {.fields = {"message"}, .delimiter = delimiter});
  };
  EXPECT_EQ(record("a||b|c\r\n", "||"), "a b|c  ");
  EXPECT_EQ(record("a b", " "), "a b");
  EXPECT_EQ(record(" ||", " |"), " ") << "a space may be the beginning of another delimiter";
  std::string message;
  for (int i = 0; i < 4'000'000; ++i) message += "x||";
  EXPECT_EQ(record(message, "||").size(), 8'000'000u);
}

TEST(DeliveryCatalogue, StoresTagsOfEachKind) {
  CatalogueWorld all;
  const auto id = all.world.deliver("arn:aws:s3:::bucket");
  ASSERT_OK(id);
  using observe::DefinitionKind;
  const auto add = [](std::map<std::string, std::string>& tags) -> Result<void> {
    tags["team"] = "web";
    return ok();
  };
  const auto destination = all.catalogue().delivery(kDeliveryRegion, *id)->destination;
  for (const auto& [kind, name] : {std::pair{DefinitionKind::delivery_source, std::string("g")},
                                   {DefinitionKind::delivery_destination, destination},
                                   {DefinitionKind::delivery, *id}}) {
    ASSERT_OK(all.catalogue().change_tags(kDeliveryRegion, kind, name, add));
    EXPECT_EQ(all.catalogue().tags(kDeliveryRegion, kind, name)->at("team"), "web");
    EXPECT_EQ(all.catalogue().change_tags(kDeliveryRegion, kind, "none", add).error().kind,
              Kind::not_found);
  }
}

}  // namespace
}  // namespace trainyard::log_routing
