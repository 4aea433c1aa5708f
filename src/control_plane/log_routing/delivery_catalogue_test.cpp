#include "log_routing/delivery_catalogue.hpp"

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

TEST(DeliveryCatalogue, SourcesHaveLogsHere) {
  CatalogueWorld all;
  ASSERT_OK(all.put_source(kGroupArns + "g"));
  EXPECT_EQ(all.put_source(kGroupArns + "to").error().kind, Kind::conflict);
  EXPECT_EQ(all.put_source(kGroupArns + "none", "APPLICATION_LOGS", "b").error().kind,
            Kind::not_found);
  EXPECT_EQ(all.put_source(kGroupArns + "g", "ACCESS_LOGS", "b").error().kind, Kind::invalid);
  EXPECT_EQ(all.put_source("arn:aws:s3:::bucket", "APPLICATION_LOGS", "b").error().kind,
            Kind::not_found);
  EXPECT_EQ(all.put_source(kOutsideArn, "EVENT_LOGS", "b").error().kind, Kind::invalid);
  ASSERT_OK(all.put_source(kOutsideArn, "ACCESS_LOGS", "b"));
  const std::string job = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/";
  EXPECT_EQ(all.put_source(job + "none", "APPLICATION_LOGS", "c").error().kind, Kind::not_found);
  ASSERT_OK(all.world.logs->ensure_stream(
      {kDeliveryRegion, "/aws/sagemaker/TrainingJobs", "one/algo-1-1"}));
  ASSERT_OK(all.put_source(job + "one", "APPLICATION_LOGS", "c"));
  EXPECT_EQ(all.catalogue().sources(kDeliveryRegion)->size(), 3u);
}

TEST(DeliveryCatalogue, DestinationsKeepTheirFormatAndType) {
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
}

TEST(DeliveryCatalogue, ASourceHasOneDeliveryOfEachType) {
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

TEST(DeliveryCatalogue, EventsNeverTravelInACircle) {
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
      << "a destination that is led elsewhere";
}

TEST(DeliveryCatalogue, OptionsAreChecked) {
  CatalogueWorld all;
  for (const std::string suffix : {"{", "}", "{other}", "a/{yyyy}/{", "a\nb", "{yyyy}}"})
    EXPECT_EQ(all.world.deliver("arn:aws:s3:::bucket", {.suffix = suffix}).error().kind,
              Kind::invalid)
        << suffix;
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

TEST(DeliveryCatalogue, TagsBelongToEachKind) {
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
