#include "notify/delivery_plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/random.hpp"

namespace trainyard::notify {
namespace {

const Instant kNow = from_milliseconds(1'000'000);
const DeliveryLimits kSmall{.threads = 4, .suspects = 2, .per_host = 2, .per_target = 2};

Lane lane(const char* host, Duration due, bool suspect = false, size_t in_flight = 0) {
  return {host, suspect, in_flight, kNow + due, {}};
}
using Starts = std::vector<size_t>;

TEST(DeliveryPlan, StartsDueLanesOldestFirst) {
  const Lane lanes[] = {lane("a", 0s), lane("b", -5s), lane("c", 1s), {"d"}};
  const DeliveryPlan plan = plan_deliveries(lanes, kSmall, kNow);
  EXPECT_EQ(plan.starts, (Starts{1, 0}));
  EXPECT_EQ(plan.next, kNow + 1s);
}

TEST(DeliveryPlan, HasNothingToDoWithoutLanes) {
  const DeliveryPlan plan = plan_deliveries({}, kSmall, kNow);
  EXPECT_TRUE(plan.starts.empty());
  EXPECT_FALSE(plan.next);
}

TEST(DeliveryPlan, WaitsForAPausedLane) {
  Lane paused = lane("a", -1s);
  paused.paused_until = kNow + 3s;
  const DeliveryPlan plan = plan_deliveries(std::span(&paused, 1), kSmall, kNow);
  EXPECT_TRUE(plan.starts.empty());
  EXPECT_EQ(plan.next, kNow + 3s);
}

TEST(DeliveryPlan, LeavesThreadsToTargetsThatAnswer) {
  const Lane lanes[] = {lane("a", -9s, true), lane("b", -8s, true), lane("c", -7s, true),
                        lane("d", -1s), lane("e", 0s)};
  EXPECT_EQ(plan_deliveries(lanes, kSmall, kNow).starts, (Starts{0, 1, 3, 4}));
}

TEST(DeliveryPlan, LimitsHostsTargetsAndSuspectTargets) {
  const Lane hosts[] = {lane("a", -3s), lane("a", -2s), lane("a", -1s), lane("b", 0s)};
  EXPECT_EQ(plan_deliveries(hosts, kSmall, kNow).starts, (Starts{0, 1, 3}));
  const Lane busy[] = {lane("a", -3s, false, 2), lane("b", -2s, false, 1), lane("c", 0s, true, 1)};
  EXPECT_EQ(plan_deliveries(busy, kSmall, kNow).starts, Starts{}) << "four threads are in use";
  const DeliveryLimits more{.threads = 9, .suspects = 2, .per_host = 9, .per_target = 2};
  EXPECT_EQ(plan_deliveries(busy, more, kNow).starts, Starts{1});
}

TEST(DeliveryPlan, NeverExceedsALimit) {
  SeededRandom random(3);
  for (int round = 0; round < 2000; ++round) {
    const DeliveryLimits limits{.threads = 1 + random.below(8),
                                .suspects = random.below(5),
                                .per_host = 1 + random.below(3),
                                .per_target = 1 + random.below(3)};
    std::vector<Lane> lanes;
    for (uint64_t i = random.below(12); i-- > 0;)
      lanes.push_back({i % 3 == 0 ? ""
                       : i % 2    ? "x"
                                  : "y",
                       random.chance(3), 0,
                       random.chance(5) ? std::optional<Instant>()
                                        : kNow + Duration(int64_t(random.below(5)) - 3),
                       kNow + Duration(random.chance(4) ? 5 : -5)});
    const DeliveryPlan plan = plan_deliveries(lanes, limits, kNow);
    std::map<std::string, size_t> hosts;
    size_t suspects = 0;
    for (const size_t i : plan.starts) {
      EXPECT_TRUE(lanes[i].due && *lanes[i].due <= kNow && lanes[i].paused_until <= kNow);
      suspects += lanes[i].suspect;
      if (!lanes[i].host.empty()) ++hosts[std::string(lanes[i].host)];
    }
    EXPECT_EQ(std::set<size_t>(plan.starts.begin(), plan.starts.end()).size(), plan.starts.size());
    EXPECT_LE(plan.starts.size(), limits.threads);
    EXPECT_LE(suspects, limits.suspects);
    for (const auto& [host, count] : hosts) EXPECT_LE(count, limits.per_host);
  }
}

TEST(Pauses, GrowUntilTheLastAttempt) {
  EXPECT_EQ(pause_after(1, 0.5), 0ms);
  EXPECT_EQ(pause_after(2, 0.5), 0ms);
  EXPECT_EQ(pause_after(3, 0.5), 10s);
  EXPECT_EQ(pause_after(12, 0.5), 10s);
  EXPECT_GT(*pause_after(13, 0.5), 10s);
  EXPECT_EQ(pause_after(22, 0.5), 10min);
  EXPECT_EQ(pause_after(kAttemptsMax - 1, 0.5), 10min);
  EXPECT_FALSE(pause_after(kAttemptsMax, 0.5));
  EXPECT_EQ(pause_after(3, 0), 8s);
  EXPECT_EQ(pause_after(3, 1), 12s);
  Duration all{};
  for (uint32_t i = 1; i < kAttemptsMax; ++i) all += *pause_after(i, 0.5);
  EXPECT_GT(all, 4h);
  EXPECT_LT(all, 6h);
}

TEST(Pauses, LanePausesGrowToAMinute) {
  EXPECT_EQ(lane_pause(1), 0ms);
  EXPECT_EQ(lane_pause(2), 0ms);
  EXPECT_EQ(lane_pause(3), 1s);
  EXPECT_EQ(lane_pause(4), 2s);
  EXPECT_EQ(lane_pause(100), 60s);
}

}  // namespace
}  // namespace trainyard::notify
