// Tests the views of a campaign, from the API's answers.
#include "cli/campaign_view.hpp"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

const Instant kAtCampaign = from_milliseconds(100'000);

Json streets() {
  return *parse_json(R"({
    "CampaignName": "streets", "Status": "InProgress", "CreationTime": 58.0, "Currency": "USD",
    "BestMetric": "accuracy", "BestRow": 2,
    "Regions": [
      {"Region": "eu-west-1", "Answers": false, "WhyNot": "cut", "Since": 94.0, "Running": 1, "Completed": 1, "Hosts": 2,
       "SamplesPerSecond": 1500.0, "Cost": 0.5, "CopyCost": 0.25, "BytesTotal": 2048, "BytesCopied": 1024},
      {"Region": "us-east-1", "Answers": true, "Failed": 1, "TriedAgain": 2, "Cost": 0.0}],
    "Rows": [
      {"Number": 1, "Label": "a", "Region": "eu-west-1", "DataRegion": "eu-west-1", "State": "completed", "Attempts": 1,
       "Why": "the data is there", "InstanceType": "ml.m5.large", "InstanceCount": 2, "PricePerHour": 0.23,
       "StartTime": 60.0, "EndTime": 90.0, "Cost": 0.25, "Metrics": [{"Name": "accuracy", "Value": 0.5}],
       "Columns": [{"Name": "name", "Value": "a"}, {"Name": "lr", "Value": "0.1"}, {"Name": "same", "Value": "x"}]},
      {"Number": 2, "Label": "b", "Region": "eu-west-1", "DataRegion": "us-east-1", "State": "completed", "Attempts": 2,
       "Why": "the cheapest", "CopyTo": "s3://c/", "BytesTotal": 1073741824, "CopyPricePerGib": 0.02,
       "InstanceType": "ml.m5.large", "InstanceCount": 1, "PricePerHour": 0.115,
       "Cost": 0.25, "Metrics": [{"Name": "accuracy", "Value": 0.75}],
       "Columns": [{"Name": "name", "Value": "b"}, {"Name": "lr", "Value": "0.2"}, {"Name": "same", "Value": "x"}]}],
    "Same": [{"Name": "epochs", "Value": "3"}],
    "Different": [{"Path": "HyperParameters.lr", "Values": ["0.1", "0.2"]}]})");
}

bool holds(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

TEST(CampaignView, ShowsRegionAndReasonInThePlan) {
  const std::string page = plan_page({}, streets());
  EXPECT_TRUE(holds(page, "the data is there")) << page;
  EXPECT_TRUE(holds(page, "2 x ml.m5.large")) << page;
  EXPECT_TRUE(holds(page,
                    "2 jobs in 1 region: eu-west-1 2; 0.34 USD an hour while all run; 1.0 GiB to "
                    "copy, 0.020 USD"))
      << page;
  EXPECT_TRUE(holds(page, "the same in all  epochs=3")) << page;
  EXPECT_TRUE(holds(page, "HyperParameters.lr: 0.1, 0.2")) << page;
}

TEST(CampaignView, CountsASharedCopyOnce) {
  Json campaign = streets();
  Json& all = campaign["Rows"];
  all.push_back(all[1]);
  EXPECT_TRUE(holds(plan_page({}, campaign), "; 1.0 GiB to copy, 0.020 USD"))
      << plan_page({}, campaign);
  EXPECT_TRUE(holds(plan_page({}, campaign), "as above"));
  all[2]["Data"] = "s3://other/";
  EXPECT_TRUE(holds(plan_page({}, campaign), "; 2.0 GiB to copy, 0.040 USD"));
}

TEST(CampaignView, ShowsHowLongARegionHasNotAnswered) {
  const std::string page = regions_page({}, streets(), kAtCampaign);
  EXPECT_TRUE(page.starts_with("streets  InProgress  2 of 3 jobs  42s\n")) << page;
  EXPECT_TRUE(holds(page, "no answer for 6s")) << page;
  EXPECT_TRUE(holds(page, "1.0 KiB of 2.0 KiB")) << page;
  EXPECT_TRUE(holds(page, "0.75")) << page;
  EXPECT_EQ(region_line(streets()["Regions"][0]),
            "eu-west-1: 1/2 done, 1 running, no answer: cut\n");
  EXPECT_EQ(region_line(streets()["Regions"][1]), "us-east-1: 1/1 done, 1 failed, 2 retried\n");
}

TEST(CampaignView, NamesTheBestRowOfTheResults) {
  const std::string page = results_page({}, streets(), kAtCampaign);
  EXPECT_TRUE(holds(page, "best: row 2, b, accuracy 0.75, lr=0.2\n")) << page;
  EXPECT_TRUE(holds(page, "\n*    2")) << page;
  EXPECT_FALSE(holds(page.substr(0, page.find('\n')), "same"))
      << page;  // a column with one value is not shown
}

TEST(CampaignView, LeavesOutMissingMembers) {
  for (const char* text :
       {"{}", "[]", R"({"Rows":[{}],"Regions":[{}]})", R"({"Rows":[7],"Regions":["x"]})"}) {
    const Json json = *parse_json(text);
    EXPECT_FALSE(plan_page({}, json).empty());
    EXPECT_FALSE(results_page({}, json, kAtCampaign).empty());
    EXPECT_FALSE(regions_page({}, json, kAtCampaign).empty());
    (void)campaigns_table({}, json, kAtCampaign);
    (void)answer_table({}, json);
  }
}

}  // namespace
}  // namespace trainyard::cli
