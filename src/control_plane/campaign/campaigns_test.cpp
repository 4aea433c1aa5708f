// Tests the rights of campaigns: what they may query in the catalogue, and in which regions rows
// may run.
#include "campaign/campaigns.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/testing/test_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::campaign {
namespace {

// A region without offers that rejects all requests.
class ClosedRegion final : public client::Client {
 public:
  Result<Json> call(client::Service, std::string_view operation, const Json&) override {
    return operation == "DescribeRegion" ? Result<Json>(Json::object())
                                         : unavailable("it is closed");
  }
  Result<std::unique_ptr<client::Connection>> open_shell(const client::ShellRequest&) override {
    return invalid("it has no shells");
  }
  const client::Settings& settings() const override { return settings_; }

 private:
  client::Settings settings_;
};

class RightsOfCampaigns : public testing::Test {
 protected:
  RightsOfCampaigns() {
    Settings settings;
    settings.home = "a";
    settings.regions = {"a", "b"};
    settings.open_client = [](const std::string&,
                              const Principal&) -> Result<std::unique_ptr<client::Client>> {
      return std::unique_ptr<client::Client>(new ClosedRegion());
    };
    settings.open_objects = [](const std::string&,
                               const Principal&) -> Result<std::unique_ptr<objects::Objects>> {
      return unavailable("it is closed");
    };
    settings.authorise = [this](const Principal& by, std::string_view action,
                                const std::string& resource) -> Result<void> {
      if (rights_.contains(by.record + " " + std::string(action) + " " + resource)) return {};
      return denied("User: " + by.arn + " is not authorized to perform: " + std::string(action));
    };
    campaigns_ = std::move(*make_campaigns(
        std::move(settings), std::move(*CampaignStore::open(":memory:")),
        std::move(*open_sqlite_catalogue(directory_.path() + "/catalogue.db", clock_)), clock_,
        random_));
  }
  Result<Described> create(const std::string& name, const std::string& query, const Principal& by,
                           const std::string& more = "") {
    return campaigns_->create(*read_definition(R"({"name":")" + name + R"(","query":")" + query +
                                               R"(","training_job":{})" + more + "}"),
                              by);
  }

  static constexpr const char* kOneRow = "SELECT 'x' AS name, 'a' AS region";
  TestClock clock_;
  SeededRandom random_{5};
  os::TemporaryDirectory directory_;
  // Set before any campaign runs; constant after.
  const std::set<std::string> rights_{"ann trainyard:QueryCatalogue *",
                                      "bob trainyard:QueryCatalogue *",
                                      "ann trainyard:DescribeCampaign campaign/anns",
                                      "bob trainyard:DescribeCampaign campaign/bobs",
                                      "bob trainyard:DescribeCampaign campaign/anns"};
  const Principal ann_{"arn:ann", "ann"}, bob_{"arn:bob", "bob"}, eve_{"arn:eve", "eve"};
  std::unique_ptr<Campaigns> campaigns_;
};

TEST_F(RightsOfCampaigns, AreRequiredForTheirQueries) {
  const auto refused = create("eves", kOneRow, eve_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::denied);
  EXPECT_EQ(refused.error().message,
            "User: arn:eve is not authorized to perform: trainyard:QueryCatalogue");
  EXPECT_FALSE(campaigns_->plan(
      *read_definition(R"({"name":"dry","query":"SELECT 1","training_job":{}})"), eve_));
  EXPECT_TRUE(campaigns_->list().empty());
  const auto made = create("anns", kOneRow, ann_);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->campaign.started_by, ann_);
}

TEST_F(RightsOfCampaigns, LimitQueriesToCampaignsThatTheCallerMayDescribe) {
  ASSERT_TRUE(create("anns", kOneRow, ann_));
  ASSERT_TRUE(create("bobs", kOneRow, bob_));
  const std::string sql = "SELECT campaign FROM campaign_rows ORDER BY campaign";
  EXPECT_EQ(campaigns_->query(sql, ann_)->rows, (std::vector<std::vector<Json>>{{"anns"}}));
  EXPECT_EQ(campaigns_->query(sql, bob_)->rows,
            (std::vector<std::vector<Json>>{{"anns"}, {"bobs"}}));
  EXPECT_TRUE(campaigns_->query(sql, eve_)->rows.empty());
  // The query of a campaign has the same limit.
  const auto rows = create("anns-look", "SELECT campaign AS name FROM campaign_rows", ann_);
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->campaign.rows.size(), 1u);
  EXPECT_EQ(rows->campaign.rows[0].label, "anns");
}

TEST_F(RightsOfCampaigns, AllowOnlyConfiguredRegions) {
  for (const char* region : {"", "c", "../etc", "A"}) {
    const auto made =
        create("anns", std::string("SELECT 'x' AS name, '") + region + "' AS region", ann_);
    EXPECT_EQ(bool(made), *region == '\0') << region;
    if (!made) {
      EXPECT_TRUE(made.error().message.starts_with("unknown region '")) << made.error().message;
    }
  }
  EXPECT_FALSE(create("placed", kOneRow, ann_, R"(,"placement":{"regions":["c"]})"));
  EXPECT_FALSE(create(
      "watched", kOneRow, ann_,
      R"(,"standing":true,"watch":[{"region":"c","uri":"s3://b/","row":{"name":"{stem}"}}])"));
}

}  // namespace
}  // namespace trainyard::campaign
