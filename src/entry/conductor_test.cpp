#include "entry/conductor.hpp"

#include <gtest/gtest.h>

namespace trainyard::entry {
namespace {

using namespace std::chrono_literals;
using Time = Conductor::Time;

Conductor gang() {
  Conductor conductor({"algo-1", "algo-2"});
  EXPECT_FALSE(conductor.joined("algo-1"));
  EXPECT_TRUE(conductor.joined("algo-2"));
  return conductor;
}

TEST(Conductor, StartsOnceWhenAllAreThere) {
  Conductor conductor({"algo-1", "algo-2"});
  EXPECT_FALSE(conductor.joined("algo-1"));
  EXPECT_FALSE(conductor.joined("algo-1"));
  EXPECT_FALSE(conductor.joined("algo-7"));
  EXPECT_TRUE(conductor.joined("algo-2"));
  EXPECT_FALSE(conductor.joined("algo-2"));
}

TEST(Conductor, EndsWhenAllAreDone) {
  auto conductor = gang();
  conductor.done("algo-2");
  EXPECT_FALSE(conductor.end(0s));
  conductor.done("algo-1");
  ASSERT_TRUE(conductor.end(0s));
  EXPECT_EQ(conductor.end(0s)->code, 0);
}

TEST(Conductor, KeepsTheFirstFailure) {
  auto conductor = gang();
  conductor.failed("algo-2", {3, 7, "ValueError"}, 1s);
  conductor.failed("algo-1", {0, 1, "Connection closed by peer"}, 1s + 50ms);
  EXPECT_FALSE(conductor.end(1s + 100ms));
  EXPECT_EQ(conductor.due(), Time(1s) + kVerdictDelay);
  const auto end = conductor.end(1s + kVerdictDelay);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->host, "algo-2");
  EXPECT_EQ(end->code, 7);
  EXPECT_EQ(end->text, "ValueError");
  EXPECT_FALSE(conductor.due());
}

TEST(Conductor, LeavesALostHostToThePlatformFirst) {
  auto conductor = gang();
  conductor.failed("algo-1", {0, 1, "Connection closed by peer"}, 1s);
  conductor.lost("algo-2", 1s + 100ms);
  EXPECT_FALSE(conductor.end(30s));
  const auto end = conductor.end(1s + 100ms + kLostPatience);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->host, "algo-2");
  EXPECT_EQ(end->code, 1);
}

TEST(Conductor, DoesNotMissAHostThatWasDone) {
  auto conductor = gang();
  conductor.done("algo-2");
  conductor.lost("algo-2", 1s);
  EXPECT_FALSE(conductor.due());
  conductor.done("algo-1");
  EXPECT_EQ(conductor.end(2s)->code, 0);
}

}  // namespace
}  // namespace trainyard::entry
