#include "entry/coordinator.hpp"

#include <gtest/gtest.h>

namespace trainyard::entry {
namespace {

using namespace std::chrono_literals;
using Time = Coordinator::Time;

Coordinator gang() {
  Coordinator coordinator({"algo-1", "algo-2"});
  EXPECT_FALSE(coordinator.joined("algo-1"));
  EXPECT_TRUE(coordinator.joined("algo-2"));
  return coordinator;
}

TEST(Coordinator, StartsOnceWhenAllHaveJoined) {
  Coordinator coordinator({"algo-1", "algo-2"});
  EXPECT_FALSE(coordinator.joined("algo-1"));
  EXPECT_FALSE(coordinator.joined("algo-1"));
  EXPECT_FALSE(coordinator.joined("algo-7"));
  EXPECT_TRUE(coordinator.joined("algo-2"));
  EXPECT_FALSE(coordinator.joined("algo-2"));
}

TEST(Coordinator, EndsWhenAllAreDone) {
  auto coordinator = gang();
  coordinator.done("algo-2");
  EXPECT_FALSE(coordinator.end(0s));
  coordinator.done("algo-1");
  ASSERT_TRUE(coordinator.end(0s));
  EXPECT_EQ(coordinator.end(0s)->code, 0);
}

TEST(Coordinator, KeepsTheFirstFailure) {
  auto coordinator = gang();
  coordinator.failed("algo-2", {3, 7, "ValueError"}, 1s);
  coordinator.failed("algo-1", {0, 1, "Connection closed by peer"}, 1s + 50ms);
  EXPECT_FALSE(coordinator.end(1s + 100ms));
  EXPECT_EQ(coordinator.next_deadline(), Time(1s) + kVerdictDelay);
  const auto end = coordinator.end(1s + kVerdictDelay);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->host, "algo-2");
  EXPECT_EQ(end->code, 7);
  EXPECT_EQ(end->text, "ValueError");
  EXPECT_FALSE(coordinator.next_deadline());
}

TEST(Coordinator, LetsThePlatformDecideAboutALostHostFirst) {
  auto coordinator = gang();
  coordinator.failed("algo-1", {0, 1, "Connection closed by peer"}, 1s);
  coordinator.lost("algo-2", 1s + 100ms);
  EXPECT_FALSE(coordinator.end(30s));
  const auto end = coordinator.end(1s + 100ms + kLostTimeout);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->host, "algo-2");
  EXPECT_EQ(end->code, 1);
}

TEST(Coordinator, IgnoresTheLossOfAHostThatWasDone) {
  auto coordinator = gang();
  coordinator.done("algo-2");
  coordinator.lost("algo-2", 1s);
  EXPECT_FALSE(coordinator.next_deadline());
  coordinator.done("algo-1");
  EXPECT_EQ(coordinator.end(2s)->code, 0);
}

}  // namespace
}  // namespace trainyard::entry
