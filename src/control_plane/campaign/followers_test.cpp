// Tests one follower with a simulated region: which jobs it submits, and which it recognises as the
// campaign's.
#include "campaign/followers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <set>
#include <thread>

#include "base/random.hpp"
#include "base/testing/test_clock.hpp"
#include "campaign/region.hpp"
#include "objects/memory.hpp"

namespace trainyard::campaign {
namespace {

// Simulates a region with the jobs of all users; its lists have one job per page.
struct Region {
  std::deque<Json> training, batch;
  bool loses_answers = false;  // requests arrive, but their answers are lost
  std::set<std::string, std::less<>> denied_operations;
  std::string broken_job;  // a training job that cannot be described
  Kind broken_kind = Kind::invalid;

  Json* find(std::deque<Json>& jobs, const char* member, const Json& value) {
    for (Json& job : jobs)
      if (job[member] == value) return &job;
    return nullptr;
  }
  Result<Json> call(std::string_view operation, const Json& input) {
    if (denied_operations.contains(operation))
      return denied("User: ann is not authorized to perform: " + std::string(operation));
    if (operation == "DescribeJob" && !broken_job.empty() && input["JobName"] == broken_job)
      return Error{broken_kind, "the job is broken", {}};
    if (operation == "DescribeJob") {
      if (const Json* job = find(training, "Name", input["JobName"])) return *job;
      return not_found("no such job");
    }
    if (operation == "CreateTrainingJob") {
      if (find(training, "Name", input["TrainingJobName"])) return conflict("the name is taken");
      training.push_back(
          {{"Name", input["TrainingJobName"]}, {"Tags", input["Tags"]}, {"Status", "InProgress"}});
      if (loses_answers) return unavailable("the link is cut");
      return Json::object();
    }
    if (operation == "StopTrainingJob") {
      (*find(training, "Name", input["TrainingJobName"]))["Status"] = "Stopped";
      return Json::object();
    }
    if (operation == "SubmitJob") {
      const std::string id = "id-" + std::to_string(batch.size());
      batch.push_back({{"jobId", id}, {"name", input["jobName"]}, {"tags", input["tags"]}});
      if (loses_answers) return unavailable("the link is cut");
      return Json{{"jobId", id}};
    }
    if (operation == "ListJobs") {
      const auto at = size_t(std::stoi(input.value("nextToken", "0")));
      Json page{{"jobSummaryList", Json::array()}};
      if (at < batch.size() && batch[at]["name"] == input["filters"][0]["values"][0])
        page["jobSummaryList"].push_back({{"jobId", batch[at]["jobId"]}});
      if (at + 1 < batch.size()) page["nextToken"] = std::to_string(at + 1);
      return page;
    }
    EXPECT_EQ(operation, "DescribeJobs");
    Json jobs = Json::array();
    for (const Json& id : input["jobs"]) jobs.push_back(*find(batch, "jobId", id));
    return Json{{"jobs", jobs}};
  }
};

class RegionClient final : public client::Client {
 public:
  explicit RegionClient(Region& region) : region_(region) {}
  Result<Json> call(client::Service, std::string_view operation, const Json& input) override {
    return region_.call(operation, input);
  }
  Result<std::unique_ptr<client::Connection>> open_shell(const client::ShellRequest&) override {
    return invalid("it has no shells");
  }
  const client::Settings& settings() const override { return settings_; }

 private:
  Region& region_;
  client::Settings settings_;
};

class Followers : public testing::Test {
 protected:
  Followers() {
    settings_.open_client = [this](const std::string&,
                                   const Principal& by) -> Result<std::unique_ptr<client::Client>> {
      opened_.push_back(by.record);
      return std::unique_ptr<client::Client>(new RegionClient(region_));
    };
    settings_.open_objects = [this](const std::string&,
                                    const Principal&) -> Result<std::unique_ptr<objects::Objects>> {
      return objects::make_memory(clock_, random_);
    };
    restart();
  }
  // A campaign of one row, whose job is "NAME-1".
  void run(const std::string& job, const std::string& id, int rows = 1,
           const std::string& name = "streets") {
    Campaign campaign{
        *read_definition(R"({"name":")" + name + R"(","query":"SELECT 1",")" + job + "}"),
        {},
        {},
        {},
        id,
        ann_};
    campaign.definition.at_once = 1;
    for (int number = 1; number <= rows; ++number) {
      Row row;
      row.number = number;
      row.region = "a";
      row.request = campaign.definition.request;
      campaign.rows.push_back(row);
    }
    ASSERT_TRUE(table_->add(std::move(campaign), kCampaignsMax));
  }
  // Drops the state in memory and loads the stored state.
  void restart() {
    table_.emplace(*store_);
    ASSERT_TRUE(table_->load());
    follower_.emplace("a", settings_, *table_, clock_);
  }
  // "running", "failed: why"
  std::string after_iterations(int iterations) {
    for (int i = 0; i < iterations; ++i) follower_->iterate();
    return row_text(0);
  }
  std::string row_text(size_t index, const std::string& name = "streets") {
    const Row row = table_->find(name)->rows[index];
    return std::string(to_string(row.state)) + (row.reason.empty() ? "" : ": " + row.reason);
  }

  static constexpr size_t kCampaignsMax = 2;
  static constexpr const char* kTraining = R"(training_job":{})";
  static constexpr const char* kBatch = R"(batch_job":{"jobQueue":"q","tags":{"x":"y"}})";
  const Principal ann_{"arn:aws:iam::123456789012:user/ann", "record of ann"};
  std::vector<std::string> opened_;  // clients, by the record of their principal
  TestClock clock_;
  SeededRandom random_{5};
  Region region_;
  Settings settings_;
  std::unique_ptr<CampaignStore> store_ = *CampaignStore::open(":memory:");
  std::optional<CampaignTable> table_;
  std::optional<RegionFollower> follower_;
};

TEST_F(Followers, NeitherReadsNorStopsForeignJobs) {
  for (const char* whose : {"", "other"}) {
    const Json tags = {{{"Key", kCampaignTag}, {"Value", whose}}};
    region_.training = {{{"Name", "streets-1"},
                         {"Status", "InProgress"},
                         {"Tags", *whose ? tags : Json()},
                         {"Cost", {{"Amount", "7"}}},
                         {"Metrics", {{{"Name", "accuracy"}, {"Value", 0.9}}}}}};
    store_ = *CampaignStore::open(":memory:");
    restart();
    run(kTraining, "mine");
    EXPECT_EQ(after_iterations(2),
              "failed: refused: the name is taken by a job that is not this campaign's, streets-1");
    const Row row = table_->find("streets")->rows[0];
    EXPECT_TRUE(row.metrics.empty());
    EXPECT_EQ(row.cost, 0);
    ASSERT_TRUE(table_->stop("streets", clock_.now(), ""));
    after_iterations(2);
    EXPECT_EQ(region_.training[0]["Status"], "InProgress");
  }
}

TEST_F(Followers, LeavesAForeignJobRunningAfterAStopBeforeTheFirstQuery) {
  region_.training = {{{"Name", "streets-1"}, {"Status", "InProgress"}}};
  run(kTraining, "mine");
  after_iterations(1);
  ASSERT_TRUE(table_->stop("streets", clock_.now(), ""));
  EXPECT_TRUE(after_iterations(1).starts_with("stopped: refused"));
  EXPECT_EQ(region_.training[0]["Status"], "InProgress");
}

TEST_F(Followers, RecogniseTheJobAfterAKillBetweenTheRequestAndItsRecord) {
  for (const char* job : {kTraining, kBatch}) {
    store_ = *CampaignStore::open(":memory:");
    region_ = {};
    // Three Batch jobs already have the name; the second belongs to another campaign.
    for (const char* whose : {"", "other", ""})
      region_.batch.push_back({{"jobId", "theirs-" + std::to_string(region_.batch.size())},
                               {"name", "streets-1"},
                               {"tags", {{kCampaignTag, whose}}}});
    restart();
    run(job, "mine");
    region_.loses_answers = true;
    EXPECT_EQ(after_iterations(1), "submitting");
    region_.loses_answers = false;
    restart();
    EXPECT_EQ(after_iterations(2), "running");
    EXPECT_EQ(region_.training.size() + region_.batch.size(), 4u);
    if (job == kBatch) {
      EXPECT_EQ(table_->find("streets")->rows[0].job_id, "id-3");
      EXPECT_EQ(region_.batch[3]["tags"], (Json{{kCampaignTag, "mine"}, {"x", "y"}}));
    }
  }
}

TEST_F(Followers, StopTheCampaignForADeniedRequest) {
  for (const char* job : {kTraining, kBatch}) {
    region_ = {};
    region_.denied_operations = {"CreateTrainingJob", "SubmitJob"};
    store_ = *CampaignStore::open(":memory:");
    restart();
    run(job, "mine", 2);
    const std::string operation = job == kBatch ? "SubmitJob" : "CreateTrainingJob";
    const std::string refusal = "User: ann is not authorized to perform: " + operation;
    EXPECT_EQ(after_iterations(2), "failed: refused: " + refusal);
    EXPECT_EQ(row_text(1), "stopped: AccessDenied: " + refusal);
    EXPECT_TRUE(region_.training.empty() && region_.batch.empty());
    // A kill of the server changes nothing.
    restart();
    const Campaign campaign = *table_->find("streets");
    EXPECT_TRUE(campaign.over());
    EXPECT_EQ(campaign.stop_reason, "AccessDenied: " + refusal);
    EXPECT_EQ(campaign.started_by, ann_);
  }
}

TEST_F(Followers, ShowADeniedRowOnlyTogetherWithTheStopOfItsCampaign) {
  run(kTraining, "mine");
  std::atomic<bool> failed_alone = false, done = false;
  std::thread reader([&] {
    while (!done) {
      const Campaign campaign = *table_->find("streets");
      if (campaign.rows[0].over() && !campaign.stopped) failed_alone = true;
    }
  });
  const auto fail = [](Row& row) { row.state = RowState::failed; };
  EXPECT_TRUE(table_->change_and_stop("streets", 1, clock_.now(), "AccessDenied: no", fail));
  EXPECT_EQ(table_->change_and_stop("streets", 1, clock_.now(), "again", fail).error().kind,
            Kind::cancelled);
  done = true;
  reader.join();
  EXPECT_FALSE(failed_alone);
  restart();
  EXPECT_EQ(row_text(0), "failed");
  EXPECT_EQ(table_->find("streets")->stop_reason, "AccessDenied: no");
}

TEST_F(Followers, FailTheRemainingRowsAfterARightWasRevoked) {
  run(kTraining, "mine", 2);
  EXPECT_EQ(after_iterations(2), "running");
  region_.training[0]["Status"] = "Completed";
  region_.denied_operations = {"CreateTrainingJob"};
  after_iterations(3);
  EXPECT_EQ(row_text(0), "completed");
  EXPECT_TRUE(row_text(1).starts_with("failed: refused")) << row_text(1);
}

TEST_F(Followers, LeaveJobsAsTheyAreWithoutTheRightToDescribeOrStopThem) {
  for (const char* operation : {"DescribeJob", "StopTrainingJob"}) {
    region_ = {};
    store_ = *CampaignStore::open(":memory:");
    restart();
    run(kTraining, "mine", 2);
    EXPECT_EQ(after_iterations(2), "running");
    region_.denied_operations = {operation};
    if (std::string_view(operation) == "StopTrainingJob") {
      ASSERT_TRUE(table_->stop("streets", clock_.now(), ""));
    }
    const std::string refusal = std::string("User: ann is not authorized to perform: ") + operation;
    EXPECT_EQ(after_iterations(3),
              "stopped: AccessDenied: " + refusal + "; its job is left as it is");
    EXPECT_TRUE(row_text(1).starts_with("stopped")) << row_text(1);
    EXPECT_TRUE(table_->find("streets")->over());
    EXPECT_EQ(region_.training[0]["Status"], "InProgress");
    EXPECT_EQ(region_.training.size(), 1u);
  }
}

TEST_F(Followers, SignsWithThePrincipalsKeysAndRenewsThem) {
  run(kTraining, "mine");
  after_iterations(2);
  EXPECT_EQ(opened_, std::vector<std::string>{"record of ann"});
  clock_.advance(settings_.client_lifetime);
  after_iterations(2);
  EXPECT_EQ(opened_, (std::vector<std::string>{"record of ann", "record of ann"}));
}

TEST_F(Followers, RecogniseJobsOfACampaignWithoutAnIdByName) {
  region_.training = {{{"Name", "streets-1"}, {"Status", "InProgress"}}};
  run(kTraining, "");
  restart();
  EXPECT_EQ(after_iterations(2), "running");
}

TEST_F(Followers, FailOnlyTheRowWithAnInvalidOutputBucket) {
  run(R"(training_job":{"OutputDataConfig":{"S3OutputPath":"s3://BAD_NAME/x"}})", "one", 1, "a");
  run(kTraining, "two", 1, "b");
  follower_->iterate();
  EXPECT_TRUE(row_text(0, "a").starts_with("failed: refused: ")) << row_text(0, "a");
  ASSERT_EQ(region_.training.size(), 1u);
  EXPECT_EQ(region_.training[0]["Name"], "b-1");
}

TEST_F(Followers, DelayNoOtherCampaignWhenOneFails) {
  for (const Kind kind : {Kind::invalid, Kind::exhausted, Kind::unavailable}) {
    region_ = {};
    region_.broken_job = "a-1";
    region_.broken_kind = kind;
    store_ = *CampaignStore::open(":memory:");
    restart();
    run(kTraining, "one", 1, "a");
    run(kTraining, "two", 1, "b");
    // Jobs of both exist after the first iteration. An iteration ends at the first campaign to
    // which its region does not answer; the next one begins after it.
    for (int iteration = 0; iteration < 3; ++iteration)
      EXPECT_EQ(follower_->iterate() == settings_.lost_interval, iteration > 0);
    EXPECT_EQ(row_text(0, "a"), "submitting");
    EXPECT_EQ(row_text(0, "b"), "running");
    EXPECT_EQ(table_->regions().at("a").answers, kind != Kind::unavailable);
    ASSERT_TRUE(table_->stop("b", clock_.now(), ""));
    for (int iteration = 0; iteration < 4; ++iteration) follower_->iterate();
    EXPECT_TRUE(row_text(0, "b").starts_with("stopped")) << row_text(0, "b");
    EXPECT_TRUE(table_->find("b")->over());
  }
}

TEST_F(Followers, DelayNoOtherCampaignWhenACopyIsInterrupted) {
  const auto source_of =
      [this](const std::string& region) -> Result<std::unique_ptr<objects::Objects>> {
    if (region == "away") return unavailable("the region is away");
    auto store = objects::make_memory(clock_, random_);
    TRY(store->create_bucket("drives", region));
    TRY(objects::write_all(*store, "drives", "7/x", "content"));
    return store;
  };
  settings_.open_objects = [&](const std::string& region, const Principal&) {
    return source_of(region);
  };
  for (const char* name : {"a", "b"}) {
    Campaign campaign{*read_definition(R"({"name":")" + std::string(name) +
                                       R"(","query":"SELECT 1",")" + kTraining + "}"),
                      {},
                      {},
                      {},
                      name,
                      ann_};
    Row row;
    row.number = 1;
    row.state = RowState::waiting;
    row.region = "here";
    row.data = "s3://drives/7/";
    row.data_region = name == std::string("a") ? "away" : "there";
    row.copy_to = "s3://drives/copies/";
    campaign.rows.push_back(row);
    ASSERT_TRUE(table_->add(std::move(campaign), kCampaignsMax));
  }
  CopyFollower copies("here", settings_, *table_, clock_);
  EXPECT_EQ(copies.iterate(), settings_.lost_interval);
  EXPECT_EQ(row_text(0, "a"), "copying: the region is away");
  EXPECT_EQ(row_text(0, "b"), "ready");
}

}  // namespace
}  // namespace trainyard::campaign
