#include "schedule/preferences.hpp"

#include <gtest/gtest.h>

#include <map>

#include "schedule/testing/test_snapshots.hpp"

namespace trainyard::schedule {
namespace {

using namespace test;

// Makes a job of one host with these preferences: vCPU and GPUs of each.
WaitingJob choosy(domain::JobNumber number, std::vector<std::pair<double, int64_t>> sizes) {
  WaitingJob waiting = job(number, 1, sizes[0].first, 1, sizes[0].second);
  waiting.requests[0].instance_type = "ml.0";
  for (size_t i = 1; i < sizes.size(); ++i)
    waiting.alternatives.push_back(
        {{{"ml." + std::to_string(i), share(sizes[i].first, 1, sizes[i].second), 1}}});
  return waiting;
}

// Returns, by job, the preference with which it starts.
using Selected = std::map<domain::JobNumber, std::optional<uint32_t>>;
Selected selected(const Snapshot& snapshot) {
  Selected all;
  for (const Start& start : plan(snapshot, {}, kNow).starts) all[start.job] = start.preference;
  return all;
}

TEST(Preferences, SelectTheFirstWithCapacity) {
  EXPECT_EQ(selected(cluster({machine("a", 8)}, {}, {choosy(1, {{8, 0}, {4, 0}, {2, 0}})})),
            (Selected{{1, 0}}));
  const auto busy = [](double taken) { return std::vector{running("training-job/x", "a", taken)}; };
  EXPECT_EQ(selected(cluster({machine("a", 8)}, busy(3), {choosy(1, {{8, 0}, {4, 0}, {2, 0}})})),
            (Selected{{1, 1}}));
  EXPECT_EQ(selected(cluster({machine("a", 8)}, busy(5), {choosy(1, {{8, 0}, {4, 0}, {2, 0}})})),
            (Selected{{1, 2}}));
  EXPECT_EQ(selected(cluster({machine("a", 8)}, {}, {choosy(1, {{4, 8}, {2, 0}})})),
            (Selected{{1, 1}}))
      << "no machine has a GPU";
}

TEST(Preferences, WaitForTheFirstIfNoneHasCapacity) {
  const auto snapshot = cluster({machine("a", 8)}, {running("training-job/x", "a", 7)},
                                {choosy(1, {{8, 0}, {4, 0}})});
  EXPECT_TRUE(selected(snapshot).empty());
  const std::string why = reason(snapshot, 1);
  EXPECT_TRUE(why.starts_with("none of its 2 instance preferences has free capacity; ml.0: "))
      << why;
  EXPECT_NE(why.find("training-job/x"), std::string::npos) << why;
}

TEST(Preferences, OfSeveralJobsShareFreeCapacity) {
  // The first takes all of a; the second falls back to what is left of b.
  const auto snapshot =
      cluster({machine("a", 8), machine("b", 4)}, {},
              {choosy(1, {{8, 0}, {4, 0}}), choosy(2, {{8, 0}, {4, 0}}), job(3, 1, 1)});
  EXPECT_EQ(selected(snapshot), (Selected{{1, 0}, {2, 1}}));
  EXPECT_FALSE(reason(snapshot, 3).empty());
}

TEST(Preferences, AreUnsetForAJobWithoutAlternatives) {
  EXPECT_EQ(selected(cluster({machine("a", 8)}, {}, {choosy(1, {{4, 0}, {2, 0}}), job(2, 1, 1)})),
            (Selected{{1, 0}, {2, std::nullopt}}));
}

TEST(Preferences, HaveTheirOwnLimits) {
  Snapshot snapshot = cluster({machine("a", 8)}, {}, {choosy(1, {{1, 0}, {1, 0}})});
  snapshot.limits = {{"ml.0 for training job usage", 0}, {"ml.1 for training job usage", 1}};
  snapshot.waiting[0].choices = {{"", {{0, 1}}}};
  snapshot.waiting[0].alternatives[0].choices = {{"", {{1, 1}}}};
  EXPECT_EQ(selected(snapshot), (Selected{{1, 1}}));
  snapshot.limits[1].used_besides = 1;
  EXPECT_TRUE(selected(snapshot).empty());
}

TEST(Preferences, UseWarmPoolsForTheFirstOnly) {
  WaitingJob job = choosy(1, {{8, 0}, {4, 0}});
  job.pools = {7};
  EXPECT_EQ(with_preference(job, 0).pools, Numbers{7});
  EXPECT_TRUE(with_preference(job, 1).pools.empty());
  EXPECT_EQ(with_preference(job, 1).requests[0].instance_type, "ml.1");
}

TEST(Preferences, EqualSnapshotsGiveEqualPlans) {
  const auto snapshot = cluster({machine("a", 8), machine("b", 4)}, {},
                                {choosy(1, {{8, 0}, {4, 0}}), choosy(2, {{8, 0}, {4, 0}, {1, 0}})});
  EXPECT_EQ(selected(snapshot), selected(snapshot));
}

}  // namespace
}  // namespace trainyard::schedule
