#include "cli/tensorboard/job_events.hpp"

#include <gtest/gtest.h>

#include "cli/tensorboard/event_file.hpp"
#include "cli/testing/test_client.hpp"

namespace trainyard::cli::tensorboard {
namespace {

constexpr Instant kCreated = Instant{Duration{1'700'000'000'000}};
constexpr int64_t kCreatedSeconds = 1'700'000'000;

// A server with one job, whose metric `loss` has the given points.
struct TensorboardWorld {
  Json job{{"TrainingJobStatus", "InProgress"},
           {"CreationTime", kCreatedSeconds},
           {"HyperParameters", {{"lr", "0.1"}}}};
  std::map<int64_t, std::pair<double, int64_t>> points;  // seconds after the creation
  std::vector<Json> questions;                           // the requests for statistics
  std::optional<Error> fault;                            // for the next of them
  ScriptedClient client{[this](const std::string& operation, const Json& input) -> Result<Json> {
    if (operation == "DescribeTrainingJob") return job;
    if (operation == "ListMetrics") return metrics();
    questions.push_back(input);
    if (fault) return *std::exchange(fault, std::nullopt);
    return statistics(input);
  }};
  JobEvents events{client, "mnist"};

  static Json metrics() {
    Json own = Json::array(), all = Json::array();
    own.push_back(Json{{"Name", "TrainingJobName"}, {"Value", "mnist"}});
    Json of_host = own;
    of_host.push_back(Json{{"Name", "Host"}, {"Value", "algo-1"}});
    all.push_back(Json{{"MetricName", "loss"}, {"Dimensions", own}});
    all.push_back(Json{{"MetricName", "cpu"}, {"Dimensions", of_host}});
    return {{"Metrics", all}};
  }
  Json statistics(const Json& input) const {
    Json found = Json::array();
    for (auto each = points.rbegin(); each != points.rend(); ++each) {  // in no order
      const int64_t at = kCreatedSeconds + each->first;
      if (at >= input["StartTime"].get<int64_t>() && at < input["EndTime"].get<int64_t>())
        found.push_back({{"Timestamp", at},
                         {"Average", each->second.first},
                         {"SampleCount", double(each->second.second)}});
    }
    return {{"Datapoints", found}};
  }
  std::string next(Duration after) {
    const auto records = events.next(kCreated + after);
    EXPECT_TRUE(records) << records.error().message;
    return records ? *records : "";
  }
};

Instant at(int64_t seconds) { return kCreated + seconds * 1s; }

TEST(TensorboardJobEvents, ReturnsOnlyNewRecordsWithEachCall) {
  TensorboardWorld world;
  world.points = {{1, {0.5, 1}}, {3, {0.25, 4}}};
  EXPECT_EQ(world.next(7s), start_record(kCreated) +
                                hyperparameters_record(kCreated, "mnist", {{"lr", "0.1"}}) +
                                scalar_record(at(1), 1, "loss", 0.5))
      << "values of the last seconds may still arrive";
  EXPECT_EQ(world.next(7s), "");
  EXPECT_EQ(world.next(30s), scalar_record(at(3), 5, "loss", 0.25)) << "four values in a period";
  EXPECT_FALSE(world.events.ended());
  world.points[40] = {0.125, 1};
  world.job["TrainingJobStatus"] = "Completed";
  world.job["TrainingEndTime"] = kCreatedSeconds + 40;
  EXPECT_EQ(world.next(41s), scalar_record(at(40), 6, "loss", 0.125) + end_record(at(40), true));
  EXPECT_TRUE(world.events.ended());
  EXPECT_EQ(world.next(50s), "");
}

TEST(TensorboardJobEvents, FindsTheJobsOwnFilesBelowItsName) {
  TensorboardWorld world;
  EXPECT_FALSE(world.events.own_files());
  world.next(1s);
  EXPECT_FALSE(world.events.own_files()) << "it uploads none";
  TensorboardWorld other;
  other.job["TensorBoardOutputConfig"] = {{"S3OutputPath", "s3://data/board/"}};
  other.next(1s);
  ASSERT_TRUE(other.events.own_files());
  EXPECT_EQ(other.events.own_files()->bucket, "data");
  EXPECT_EQ(other.events.own_files()->key, "board/mnist/tensorboard-output");
}

TEST(TensorboardJobEvents, LosesNothingByAFault) {
  TensorboardWorld world;
  world.points = {{1, {0.5, 1}}, {2000, {0.25, 1}}};
  world.fault = unavailable("the server restarts");
  EXPECT_FALSE(world.events.next(at(3000)));
  const std::string records = world.next(3000s);
  EXPECT_TRUE(records.starts_with(start_record(kCreated)));
  EXPECT_TRUE(records.ends_with(scalar_record(at(1), 1, "loss", 0.5) +
                                scalar_record(at(2000), 2, "loss", 0.25)));
}

TEST(TensorboardJobEvents, RequestsAtMostTheMaximumOfPoints) {
  TensorboardWorld world;
  world.next(kPointsMax * 10s - 1s);
  ASSERT_FALSE(world.questions.empty());
  EXPECT_LE(world.questions.size(), size_t(kPointsMax / kPointsOfAnswerMax + 1));
  for (const Json& each : world.questions) {
    EXPECT_EQ(each["Period"], 10);
    EXPECT_LE(each["EndTime"].get<int64_t>() - each["StartTime"].get<int64_t>(),
              10 * kPointsOfAnswerMax);
    EXPECT_EQ(each["StartTime"].get<int64_t>() % 10, 0);
  }
}

TEST(TensorboardJobEvents, UsesPeriodsOfMinutesForLongJobs) {
  TensorboardWorld world;
  world.next(kPointsMax * 61s);
  EXPECT_EQ(world.questions.at(0)["Period"], 120);
}

TEST(TensorboardJobEvents, EndsForAJobThatNeverStarted) {
  TensorboardWorld world;
  world.job["TrainingJobStatus"] = "Stopped";
  world.job["LastModifiedTime"] = kCreatedSeconds + 5;
  EXPECT_TRUE(world.next(20s).ends_with(end_record(at(5), false)));
  EXPECT_TRUE(world.events.ended());
}

}  // namespace
}  // namespace trainyard::cli::tensorboard
