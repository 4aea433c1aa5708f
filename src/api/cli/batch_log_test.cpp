#include "cli/batch_log.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "cli/testing/test_client.hpp"

namespace trainyard::cli {
namespace {

TEST(LogSources, NamesTheStreamOfEachAttemptOnce) {
  const Json detail{
      {"attempts",
       {{{"container", {{"logStreamName", "d/default/1"}}}}, {{"container", Json::object()}}}},
      {"container",
       {{"logStreamName", "d/default/2"},
        {"logConfiguration",
         {{"logDriver", "awslogs"}, {"options", {{"awslogs-group", "own"}}}}}}}};
  const auto sources = log_sources(detail, "digits");
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(sources[0].stream, "d/default/1");
  EXPECT_EQ(sources[1].stream, "d/default/2");
  EXPECT_EQ(sources[0].group, "own");
  EXPECT_EQ(sources[1].label, "digits");

  const auto ended = log_sources({{"attempts", {{{"container", {{"logStreamName", "s"}}}}}},
                                  {"container", {{"logStreamName", "s"}}}},
                                 "digits");
  ASSERT_EQ(ended.size(), 1u) << "the container of a job that ended is its last attempt's";
  EXPECT_EQ(ended[0].group, "/aws/batch/job");
  EXPECT_TRUE(log_sources(Json::object(), "").empty());
}

// Logs simulates Batch and CloudWatch Logs: each job has one stream, which is named by the job's
// id.
struct Logs {
  std::map<std::string, std::string> status;              // by id
  std::map<std::string, std::vector<std::string>> lines;  // by id; the time is the line's length
  size_t pages = 0;                                       // of GetLogEvents

  Result<Json> answer(const std::string& operation, const Json& input) {
    if (operation == "ListJobs") {
      Json children = Json::array();
      for (const auto& [id, is] : status)
        if (is == input["jobStatus"] && id.find(':') != std::string::npos)
          children.push_back(
              {{"arrayProperties", {{"index", std::stoi(id.substr(id.find(':') + 1))}}}});
      return Json{{"jobSummaryList", std::move(children)}};
    }
    if (operation == "DescribeJobs") {
      EXPECT_LE(input["jobs"].size(), 100u);
      Json jobs = Json::array();
      for (const std::string id : input["jobs"])
        if (const auto found = status.find(id); found != status.end())
          jobs.push_back(
              {{"jobId", id},
               {"status", found->second},
               {"container",
                found->second == "RUNNABLE" ? Json::object() : Json{{"logStreamName", id}}}});
      return Json{{"jobs", std::move(jobs)}};
    }
    ++pages;
    const auto& stream = lines[input["logStreamName"]];
    const auto first = size_t(std::stoi(input.value("nextToken", "0")));
    Json events = Json::array();
    for (size_t i = first; i < stream.size(); ++i)
      events.push_back({{"timestamp", int64_t(stream[i].size())}, {"message", stream[i]}});
    return Json{{"events", std::move(events)}, {"nextForwardToken", std::to_string(stream.size())}};
  }
};

class BatchLog : public testing::Test {
 protected:
  std::unique_ptr<LogFollower> follow(int64_t children, int64_t nodes = 1, LogChoice choice = {}) {
    JobView job;
    job.name = "4b7d", job.display_name = "digits", job.arn = "arn:aws:batch:r:1:job/4b7d";
    job.groups = {{"x", nodes}};
    if (children > 0) job.array = ArrayView{children, 0, 0, 0};
    auto follower = follow_log(client_, job, choice);
    EXPECT_TRUE(follower) << follower.error().message;
    return *std::move(follower);
  }
  // Returns the lines of one round, with their labels: "digits:7 a".
  std::vector<std::string> round(LogFollower& follower, bool ended = false) {
    std::vector<std::string> out;
    const auto done = follower.round(ended, [&](const std::vector<LogLine>& lines) -> Result<void> {
      for (const LogLine& line : lines) out.push_back(line.host + " " + line.text);
      return {};
    });
    EXPECT_TRUE(done) << done.error().message;
    return out;
  }
  using Lines = std::vector<std::string>;
  Logs logs_;
  ScriptedClient client_{[this](const std::string& operation, const Json& input) {
    return logs_.answer(operation, input);
  }};
};

TEST_F(BatchLog, FollowsAJobOfOneContainer) {
  logs_.status = {{"4b7d", "RUNNABLE"}};
  const auto follower = follow(0);
  EXPECT_EQ(round(*follower), Lines{});
  logs_.status["4b7d"] = "RUNNING";
  logs_.lines["4b7d"] = {"a"};
  EXPECT_EQ(round(*follower), Lines{"digits a"});
  logs_.lines["4b7d"].push_back("bb");
  EXPECT_EQ(round(*follower), Lines{"digits bb"}) << "only the new line";
}

TEST_F(BatchLog, MergesNodesByTime) {
  logs_.status = {{"4b7d", "RUNNING"}, {"4b7d#0", "RUNNING"}, {"4b7d#1", "RUNNING"}};
  logs_.lines = {{"4b7d#0", {"a", "ccc"}}, {"4b7d#1", {"bb"}}};
  EXPECT_EQ(round(*follow(0, 2)), (Lines{"digits#0 a", "digits#1 bb", "digits#0 ccc"}));
  EXPECT_EQ(round(*follow(0, 2, {1, {}})), Lines{"digits#1 bb"});
}

TEST_F(BatchLog, PrintsFailedChildrenFirstAndEachWhole) {
  logs_.status = {
      {"4b7d:0", "SUCCEEDED"}, {"4b7d:1", "RUNNING"}, {"4b7d:2", "FAILED"}, {"4b7d:3", "RUNNABLE"}};
  logs_.lines = {{"4b7d:0", {"a", "ccc"}}, {"4b7d:1", {"bb"}}, {"4b7d:2", {"lost", "again"}}};
  const auto follower = follow(4);
  EXPECT_EQ(round(*follower), (Lines{"digits:2 lost", "digits:2 again", "digits:0 a",
                                     "digits:0 ccc", "digits:1 bb"}));
  // Later rounds merge the new lines of the others by time. Ended children are not read again.
  logs_.status["4b7d:1"] = "SUCCEEDED";
  logs_.status["4b7d:3"] = "SUCCEEDED";
  logs_.lines["4b7d:1"].push_back("eeeee");
  logs_.lines["4b7d:3"] = {"dddd"};
  EXPECT_EQ(round(*follower), (Lines{"digits:3 dddd", "digits:1 eeeee"}));
  const size_t pages = logs_.pages;
  EXPECT_EQ(round(*follower, true), Lines{});
  EXPECT_EQ(logs_.pages, pages);
}

TEST_F(BatchLog, ReadsSomeChildrenInARoundAndAllInTheLastOne) {
  constexpr int kChildren = 700;
  for (int i = 0; i < kChildren; ++i) logs_.status["4b7d:" + std::to_string(i)] = "RUNNABLE";
  const auto follower = follow(kChildren);
  EXPECT_EQ(round(*follower), Lines{});
  client_.calls.clear();
  EXPECT_EQ(round(*follower), Lines{});
  EXPECT_EQ(client_.calls, Lines(5, "DescribeJobs"));
  logs_.status["4b7d:699"] = "FAILED";
  logs_.lines["4b7d:699"] = {"late"};
  EXPECT_EQ(round(*follower, true), Lines{"digits:699 late"});
}

TEST_F(BatchLog, RejectsAHostOfAnArray) {
  JobView job;
  job.name = "4b7d", job.display_name = "digits", job.arn = "arn:aws:batch:r:1:job/4b7d";
  job.array = ArrayView{2, 0, 0, 0};
  const auto follower = follow_log(client_, job, {1, {}});
  ASSERT_FALSE(follower);
  EXPECT_EQ(follower.error().message, "array '4b7d' has children, not hosts; write 4b7d:INDEX");
}

}  // namespace
}  // namespace trainyard::cli
