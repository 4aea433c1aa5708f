#include "train/settings.hpp"

#include <gtest/gtest.h>

namespace trainyard::train {
namespace {

TEST(Settings, ParsesPlainValuesAndValuesQuotedByTheSdk) {
  const auto settings = parse_settings({{"epochs", "\"7\""},
                                        {"optimizer", "\"adam\""},
                                        {"learning_rate", "0.01"},
                                        {"channel", "pixels"},
                                        {"seed", "12345678901"},
                                        {"momentum", "0.5"},
                                        {"sagemaker_program", "\"train.py\""},
                                        {"_tuning_objective_metric", "x"}});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->epochs, 7);
  EXPECT_EQ(settings->optimizer.method, Method::adam);
  EXPECT_FLOAT_EQ(settings->learning_rate, 0.01f);
  EXPECT_FLOAT_EQ(settings->optimizer.momentum, 0.5f);
  EXPECT_EQ(settings->channel, "pixels");
  EXPECT_EQ(settings->seed, 12345678901u);
}

TEST(Settings, ErrorsNameTheHyperparameter) {
  const struct {
    const char* name;
    const char* value;
  } rows[] = {{"epochs", "many"},      {"epochs", "0"},   {"epochs", "1.5"},
              {"epochs", "nan"},       {"port", "70000"}, {"optimizer", "magic"},
              {"learning_rate", "-1"}, {"momentum", "1"}, {"channel", "../x"},
              {"weight_decay", "nan"}, {"epoch", "3"}};
  for (const auto& row : rows) {
    const auto settings = parse_settings({{row.name, row.value}});
    ASSERT_FALSE(settings) << row.name << "=" << row.value;
    EXPECT_EQ(settings.error().kind, Kind::invalid);
    EXPECT_NE(settings.error().message.find(row.name), std::string::npos)
        << settings.error().message;
  }
  EXPECT_FALSE(parse_settings({{"shift", "1"}}));  // image_width is missing
}

TEST(Settings, RegionSettingsSplitThisJobOrJoinOtherJobs) {
  const auto split = parse_settings({{"regions", "2"},
                                     {"region_steps", "50"},
                                     {"region_coding", "f16"},
                                     {"region_encrypt", "true"},
                                     {"region_learning_rate", "1"},
                                     {"region_momentum", "0"}});
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_TRUE(split->regions.any());
  EXPECT_EQ(split->regions.all(), 2);
  EXPECT_EQ(split->regions.steps, 50);
  EXPECT_TRUE(split->regions.encrypt);
  EXPECT_EQ(split->regions.coding, local_sgd::Coding::f16);
  EXPECT_EQ(split->regions.outer.learning_rate, 1);
  EXPECT_EQ(split->regions.outer.momentum, 0);

  const auto part = parse_settings(
      {{"region_leaders", "\"eu.example:7840,[::1]:1\""}, {"region", "1"}, {"region_secret", "s"}});
  ASSERT_TRUE(part) << part.error().message;
  ASSERT_EQ(part->regions.all(), 2);
  EXPECT_EQ(part->regions.leaders[0].host, "eu.example");
  EXPECT_EQ(part->regions.leaders[0].port, 7840);
  EXPECT_FALSE(parse_settings({})->regions.any());

  const std::map<std::string, std::string> wrong[] = {
      {{"regions", "0"}},
      {{"regions", "65"}},
      {{"region_steps", "0"}},
      {{"region_coding", "int3"}},
      {{"region_encrypt", "maybe"}},
      {{"region_momentum", "1"}},
      {{"region_leaders", "eu.example"}, {"region_secret", "s"}},
      {{"region_leaders", ":7840"}, {"region_secret", "s"}},
      {{"region_leaders", "eu.example:0"}, {"region_secret", "s"}},
      {{"region_leaders", "a:1,b:1"}},
      {{"region_leaders", "a:1,b:1"}, {"region_secret", "s"}, {"region", "2"}},
      {{"region_leaders", "a:1,b:1"}, {"region_secret", "s"}, {"regions", "2"}},
  };
  for (const auto& each : wrong) {
    const auto settings = parse_settings(each);
    ASSERT_FALSE(settings) << each.begin()->first;
    EXPECT_NE(settings.error().message.find("region"), std::string::npos)
        << settings.error().message;
  }
}

}  // namespace
}  // namespace trainyard::train
