#include "launch/kubernetes/watch_plan.hpp"

#include <gtest/gtest.h>

#include "launch/kubernetes/kubernetes.hpp"

namespace trainyard::launch {
namespace {

const Result<void> kBroken = unavailable("the connection broke");
const Result<void> kExpired = conflict("too old", KubernetesFault::expired);
const Result<void> kDenied = denied("cannot watch");
constexpr Duration kLong = WatchPlan::kStableAfter;

WatchPlan plan_after_list() {
  WatchPlan plan;
  plan.listed("7");
  return plan;
}

TEST(WatchPlan, ListsFirstAndThenWatches) {
  WatchPlan plan;
  EXPECT_TRUE(plan.lists());
  plan.listed("7");
  EXPECT_FALSE(plan.lists());
  EXPECT_EQ(plan.version(), "7");
  EXPECT_EQ(plan.pause(17), 0ms);
}

TEST(WatchPlan, ResumesAtOnceAfterTheLastEventOrBookmark) {
  WatchPlan plan = plan_after_list();
  plan.received("8");
  plan.watch_ended({}, kLong);
  EXPECT_FALSE(plan.lists());
  EXPECT_EQ(plan.version(), "8");
  EXPECT_EQ(plan.pause(17), 0ms);
}

TEST(WatchPlan, ResumesABrokenWatchAfterAPause) {
  WatchPlan plan = plan_after_list();
  plan.received("8");
  plan.watch_ended(kBroken, kLong);
  EXPECT_FALSE(plan.lists());
  EXPECT_EQ(plan.version(), "8");
  EXPECT_GT(plan.pause(17), 0ms);
  EXPECT_LE(plan.pause(17), WatchPlan::kPauseMin);
}

struct Ending {
  const char* name;
  void (*end)(WatchPlan&);
  bool lists;
};

TEST(WatchPlan, ListsAgainOnlyWhereAWatchCannotContinue) {
  const Ending endings[] = {
      {"its timeout", [](WatchPlan& plan) { plan.watch_ended({}, kLong); }, false},
      {"ended early", [](WatchPlan& plan) { plan.watch_ended({}, 1ms); }, false},
      {"broken", [](WatchPlan& plan) { plan.watch_ended(kBroken, 1ms); }, false},
      {"status 410", [](WatchPlan& plan) { plan.watch_ended(kExpired, 1ms); }, true},
      {"denied", [](WatchPlan& plan) { plan.watch_ended(kDenied, 1ms); }, true},
      {"an event of 410, or one that cannot be read",
       [](WatchPlan& plan) { plan.watch_failed(kLong); }, true},
      {"a pending write that a list may hide", [](WatchPlan& plan) { plan.list_next(); }, true},
  };
  for (const Ending& ending : endings) {
    WatchPlan plan = plan_after_list();
    ending.end(plan);
    EXPECT_EQ(plan.lists(), ending.lists) << ending.name;
    plan.listed("9");
    EXPECT_FALSE(plan.lists()) << ending.name;
    EXPECT_EQ(plan.version(), "9") << ending.name;
  }
}

TEST(WatchPlan, DoublesPausesUpToALimit) {
  WatchPlan plan;
  Duration last{};
  for (int failure = 0; failure < 100; ++failure) {
    plan.list_failed();
    const Duration pause = plan.pause(0);
    EXPECT_GE(pause, last);
    EXPECT_LE(plan.pause(~uint64_t{0}), WatchPlan::kPauseMax);
    last = pause;
  }
  EXPECT_EQ(last, WatchPlan::kPauseMax / 2);
  EXPECT_EQ(plan.pause(uint64_t(WatchPlan::kPauseMax.count() / 2)), WatchPlan::kPauseMax);
}

TEST(WatchPlan, KeepsItsPausesWhileListsSucceedAndWatchesFail) {
  WatchPlan plan;
  for (int round = 0; round < 10; ++round) {
    plan.listed("7");
    plan.received("8");
    plan.watch_failed(1ms);
  }
  EXPECT_GE(plan.pause(0), WatchPlan::kPauseMax / 2) << "a list and an event are no proof";
  plan.listed("7");
  plan.watch_ended({}, kLong);
  EXPECT_EQ(plan.pause(17), 0ms);
}

TEST(WatchPlan, ListsAfterSomeWatchesThatBreakAtOnce) {
  WatchPlan plan = plan_after_list();
  uint32_t watches = 0;
  while (!plan.lists() && watches < 100) {
    plan.watch_ended(kBroken, 1ms);
    ++watches;
  }
  EXPECT_EQ(watches, WatchPlan::kFailedWatchesMax);
}

TEST(WatchPlan, HasTimeoutsThatDiffer) {
  EXPECT_EQ(WatchPlan::timeout(0), WatchPlan::kTimeoutMin);
  for (const uint64_t random : {uint64_t{17}, uint64_t{1} << 40, ~uint64_t{0}}) {
    EXPECT_GE(WatchPlan::timeout(random), WatchPlan::kTimeoutMin);
    EXPECT_LE(WatchPlan::timeout(random), WatchPlan::kTimeoutMax);
  }
  EXPECT_NE(WatchPlan::timeout(1), WatchPlan::timeout(2));
}

}  // namespace
}  // namespace trainyard::launch
