#include "train/settings.hpp"

#include <gtest/gtest.h>

namespace trainyard::train {
namespace {

TEST(Settings, are_read_plain_and_as_the_sdk_quotes_them) {
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

TEST(Settings, what_is_wrong_is_named) {
  const struct {
    const char* name;
    const char* value;
  } rows[] = {{"epochs", "many"},  {"epochs", "0"},         {"epochs", "1.5"},       {"epochs", "nan"},
              {"port", "70000"},   {"optimizer", "magic"},  {"learning_rate", "-1"}, {"momentum", "1"},
              {"channel", "../x"}, {"weight_decay", "nan"}, {"epoch", "3"}};
  for (const auto& row : rows) {
    const auto settings = parse_settings({{row.name, row.value}});
    ASSERT_FALSE(settings) << row.name << "=" << row.value;
    EXPECT_EQ(settings.error().kind, Kind::invalid);
    EXPECT_NE(settings.error().message.find(row.name), std::string::npos) << settings.error().message;
  }
  EXPECT_FALSE(parse_settings({{"shift", "1"}}));  // of what width?
}

}  // namespace
}  // namespace trainyard::train
