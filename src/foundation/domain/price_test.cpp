#include "domain/price.hpp"

#include <gtest/gtest.h>

namespace trainyard::domain {
namespace {

PriceTable prices() {
  PriceTable table;
  table.set("", "ml.m5.large", {0.36, 0.108});
  table.set("eu-west-1", "ml.m5.large", {0.72, 0.18});
  table.set("", "ml.g5.xlarge", {3.6, 1.8});
  return table;
}

TEST(PriceTest, APriceForARegionTakesPrecedence) {
  EXPECT_EQ(prices().find("us-east-1", "ml.m5.large")->on_demand, 0.36);
  EXPECT_EQ(prices().find("eu-west-1", "ml.m5.large")->on_demand, 0.72);
  EXPECT_EQ(prices().find("eu-west-1", "ml.g5.xlarge")->spot, 1.8);
  EXPECT_FALSE(prices().find("eu-west-1", "ml.none.large"));
}

TEST(PriceTest, ComputesCostsOfJobs) {
  struct Row {
    std::string about;
    std::vector<InstanceGroup> groups;
    bool spot;
    int64_t training, billable;
    int64_t millionths, on_demand;
  };
  const Row rows[] = {
      {"one host, on demand", {{"all", "ml.m5.large", 1}}, false, 100, 100, 10'000, 10'000},
      {"four hosts", {{"all", "ml.m5.large", 4}}, false, 100, 100, 40'000, 40'000},
      {"two kinds",
       {{"a", "ml.m5.large", 2}, {"b", "ml.g5.xlarge", 1}},
       false,
       10,
       10,
       12'000,
       12'000},
      {"spot", {{"all", "ml.m5.large", 1}}, true, 100, 100, 3'000, 10'000},
      {"spot, half of it interrupted", {{"all", "ml.m5.large", 1}}, true, 100, 50, 1'500, 10'000},
      {"never ran", {{"all", "ml.m5.large", 1}}, false, 0, 0, 0, 0},
  };
  for (const Row& row : rows) {
    const Cost cost =
        cost_of(prices(), "us-east-1", row.groups, row.spot, row.training, row.billable);
    EXPECT_EQ(cost.millionths, row.millionths) << row.about;
    EXPECT_EQ(cost.on_demand_millionths, row.on_demand) << row.about;
    EXPECT_TRUE(cost.unpriced.empty()) << row.about;
  }
}

TEST(PriceTest, ChargesAShareByItsParts) {
  PriceTable table;
  table.set("", "vCPU", {0.36, 0.18});
  table.set("", "GiB", {0.036, 0.018});
  const InstanceGroup half{"default", "0.5 vCPU, 2048 MiB", 2, Share{0.5, int64_t(2) << 30, 0}};
  EXPECT_EQ(cost_of(table, "us-east-1", {half}, false, 100, 100).millionths, 14'000);
  EXPECT_EQ(cost_of(table, "us-east-1", {half}, true, 100, 100).millionths, 7'000);
  InstanceGroup with_gpu = half;
  with_gpu.share->gpus = 1;
  EXPECT_EQ(cost_of(table, "us-east-1", {with_gpu}, false, 100, 100).unpriced.size(), 1u);
  table.set("us-east-1", "GPU", {3.6, 1.8});
  EXPECT_EQ(cost_of(table, "us-east-1", {with_gpu}, false, 100, 100).millionths, 214'000);
  table.set("us-east-1", "0.5 vCPU, 2048 MiB", {7.2, 3.6});
  EXPECT_EQ(cost_of(table, "us-east-1", {half}, false, 100, 100).millionths, 400'000)
      << "the price of a type takes precedence over those of its parts";
}

TEST(PriceTest, ListsInstanceTypesWithoutAPriceOnce) {
  const Cost cost =
      cost_of(prices(), "us-east-1", {{"a", "ml.x.y", 1}, {"b", "ml.x.y", 2}}, false, 10, 10);
  EXPECT_EQ(cost.millionths, 0);
  EXPECT_EQ(cost.unpriced, std::vector<std::string>{"ml.x.y"});
}

TEST(PriceTest, SavingsAreAFractionOfTheOnDemandCost) {
  const Cost cost = cost_of(prices(), "us-east-1", {{"all", "ml.m5.large", 1}}, true, 3600, 3600);
  EXPECT_DOUBLE_EQ(cost.saved(), 0.7);
  EXPECT_EQ(Cost{}.saved(), 0);
}

TEST(PriceTest, MoneyTextShowsTwoSignificantDigits) {
  EXPECT_EQ(money_text(0), "0.00");
  EXPECT_EQ(money_text(12'340'000), "12.34");
  EXPECT_EQ(money_text(1'234'560'000), "1234.56");
  EXPECT_EQ(money_text(50'000), "0.050");
  EXPECT_EQ(money_text(4'200), "0.0042");
  EXPECT_EQ(money_text(42), "0.000042");
}

TEST(PriceTest, ListPricesIncludeCommonTrainingInstances) {
  const PriceTable table = list_prices_of_2023();
  EXPECT_EQ(table.currency, "USD");
  EXPECT_DOUBLE_EQ(table.find("ap-south-1", "ml.m5.xlarge")->on_demand, 0.23);
  EXPECT_DOUBLE_EQ(table.find("us-east-1", "ml.p3.2xlarge")->spot, 3.825 * 0.3);
}

}  // namespace
}  // namespace trainyard::domain
