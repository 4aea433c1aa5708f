#include "exposition/latest_values.hpp"

#include <gtest/gtest.h>

#include "os/temporary_directory.hpp"

namespace trainyard::exposition {
namespace {

const domain::JobKey kDigits{"eu-west-1", "digits"};

observe::MetricRecord of_job(const std::string& job, const std::string& metric, int64_t at,
                             double value) {
  return {{"eu-west-1", "/aws/sagemaker/TrainingJobs", metric, {{"TrainingJobName", job}}},
          observe::sample_of(from_milliseconds(at), value)};
}

observe::MetricRecord of_host(const std::string& host, const std::string& metric, int64_t at,
                              double value) {
  return {{"eu-west-1", "/aws/sagemaker/TrainingJobs", metric, {{"Host", host}}},
          observe::sample_of(from_milliseconds(at), value)};
}

// Adds jobs of the tests' region.
void add(LatestValues& values, std::initializer_list<const char*> jobs) {
  for (const char* job : jobs) values.add({"eu-west-1", job});
}

size_t count(const LatestValues& values, const char* job) {
  return values.values_of({"eu-west-1", job}).values.size();
}

TEST(LatestValues, HaveTheLatestPointAndTheSumOfAll) {
  LatestValues values({});
  add(values, {"digits", "other"});
  values.record({of_job("digits", "loss", 2000, 4), of_job("digits", "loss", 3000, 2),
                 of_job("digits", "loss", 1000, 8),
                 of_host("digits/algo-2", "CPUUtilization", 9, 1),
                 of_job("other", "loss", 5000, 1)});
  const JobValues found = values.values_of(kDigits);
  ASSERT_EQ(found.values.size(), 2U);
  EXPECT_EQ(found.values[0].metric, "CPUUtilization");
  EXPECT_EQ(found.values[0].host, "algo-2");
  EXPECT_EQ(found.values[1].value, 2);
  EXPECT_EQ(found.values[1].total, 14);
  EXPECT_EQ(found.last_point, from_milliseconds(3000));
  values.forget(kDigits);
  EXPECT_TRUE(values.values_of(kDigits).values.empty());
  EXPECT_EQ(values.values_of({"eu-west-1", "other"}).values.size(), 1U);
}

TEST(LatestValues, IgnoreMetricsThatBelongToNoJob) {
  observe::MetricRecord custom = of_job("digits", "loss", 1, 1);
  custom.key.name_space = "Custom";
  observe::MetricRecord two = of_job("digits", "loss", 1, 1);
  two.key.dimensions["More"] = "x";
  EXPECT_FALSE(owner_of(custom.key));
  EXPECT_FALSE(owner_of(two.key));
  EXPECT_FALSE(owner_of(of_host("no-host", "loss", 1, 1).key));
}

TEST(LatestValues, LimitTheSeriesOfAJob) {
  LatestValues values({.series_of_job_max = 10, .series_max = 1000});
  add(values, {"digits", "other"});
  for (int i = 0; i < 12; ++i)
    values.record({of_job("digits", "m" + std::to_string(i), 1, i), of_job("other", "loss", 1, 1)});
  values.record({of_job("digits", "m3", 2, 33)});
  const JobValues found = values.values_of(kDigits);
  EXPECT_EQ(found.values.size(), 10U);
  EXPECT_EQ(found.points_left_out, 2U);
  EXPECT_EQ(values.points_left_out(), 2U);
  EXPECT_EQ(values.values_of({"eu-west-1", "other"}).values.size(), 1U);
}

TEST(LatestValues, DropTheLeastRecentJobAtTheTotalLimit) {
  LatestValues values({.series_of_job_max = 10, .series_max = 3});
  add(values, {"a", "b", "c", "d", "e"});
  values.record({of_job("a", "m", 3, 1), of_job("b", "m", 1, 1), of_job("c", "m", 2, 1)});
  values.record({of_job("a", "m", 4, 1)});
  values.record({of_job("d", "m", 5, 1)});
  EXPECT_EQ(count(values, "b"), 0U) << "its last point arrived before those of other jobs";
  values.record({of_job("e", "m", 6, 1)});
  EXPECT_EQ(count(values, "c"), 0U);
  EXPECT_EQ(count(values, "a") + count(values, "d") + count(values, "e"), 3U);
  values.record({of_job("b", "m", 7, 1)});
  EXPECT_EQ(count(values, "b"), 1U)
      << "points of a job whose values were dropped are still recorded";
}

TEST(LatestValues, IgnoreTheTimesOfPointsWhenDroppingJobs) {
  LatestValues values({.series_of_job_max = 10, .series_max = 2});
  add(values, {"future", "a", "b"});
  values.record({of_job("future", "m", INT64_MAX / 2, 1)});
  values.record({of_job("a", "m", 1, 1)});
  values.record({of_job("b", "m", 2, 1)});
  EXPECT_EQ(count(values, "future"), 0U);
  EXPECT_EQ(count(values, "a") + count(values, "b"), 2U);
}

TEST(LatestValues, KeepTheValuesOfAJobThatReachesTheTotalLimit) {
  LatestValues values({.series_of_job_max = 10, .series_max = 2});
  add(values, {"a"});
  values.record({of_job("a", "m", 1, 1), of_job("a", "n", 1, 1), of_job("a", "o", 1, 1)});
  EXPECT_EQ(count(values, "a"), 2U);
  EXPECT_EQ(values.points_left_out(), 1U);
}

TEST(LatestValues, RecordOnlyPointsOfAddedJobs) {
  LatestValues values({});
  values.record({of_job("digits", "loss", 1, 1)});
  EXPECT_EQ(count(values, "digits"), 0U);
  values.add(kDigits);
  values.record({of_job("digits", "loss", 2, 1)});
  values.add(kDigits);
  EXPECT_EQ(count(values, "digits"), 1U) << "a job that is added twice keeps its values";
  values.forget(kDigits);
  values.record({of_job("digits", "loss", 3, 1)});
  EXPECT_EQ(count(values, "digits"), 0U);
  values.forget(kDigits);
}

TEST(LatestValues, RestoreStoredPointsWithoutReplacingNewerValues) {
  os::TemporaryDirectory directory;
  const auto metrics = *observe::open_metrics(directory.path());
  ASSERT_TRUE(
      metrics->append({of_job("digits", "loss", 1000, 4), of_job("digits", "loss", 2000, 3),
                       of_job("digits", "accuracy", 1000, .5), of_job("other", "loss", 1000, 1)}));
  LatestValues values({});
  add(values, {"digits", "other"});
  values.record({of_job("digits", "accuracy", 3000, .9)});
  ASSERT_TRUE(values.restore(*metrics, "eu-west-1",
                             [](const domain::JobKey& job) { return job.name == "digits"; }));
  const JobValues found = values.values_of(kDigits);
  ASSERT_EQ(found.values.size(), 2U);
  EXPECT_EQ(found.values[0].value, .9);
  EXPECT_EQ(found.values[0].total, .9);
  EXPECT_EQ(found.values[1].value, 3);
  EXPECT_EQ(found.values[1].total, 0) << "restored points are not added to totals";
  EXPECT_TRUE(values.values_of({"eu-west-1", "other"}).values.empty());
}

}  // namespace
}  // namespace trainyard::exposition
