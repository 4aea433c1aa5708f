#include "net/rate_floor.hpp"

#include <gtest/gtest.h>

namespace trainyard::net {
namespace {

using namespace std::chrono_literals;

TEST(RateFloor, APauseUsesUpTheAllowance) {
  RateFloor floor(60s, 1024);
  floor.waited(45s, 0);
  EXPECT_EQ(floor.allowance(), 15s);
  floor.waited(15s, 0);
  EXPECT_EQ(floor.allowance(), 0s);
  floor.waited(1h, 0);
  EXPECT_EQ(floor.allowance(), 0s) << "never negative: a wait of zero ends at once";
}

TEST(RateFloor, AllowsTheMinimumRateForAnyTime) {
  RateFloor floor(60s, 1024);
  for (int second = 0; second < 100'000; second++) floor.waited(1s, 1024);
  EXPECT_EQ(floor.allowance(), 60s);
}

TEST(RateFloor, EndsAPeerThatSendsByteByByte) {
  RateFloor floor(60s, 1024);
  int seconds = 0;
  while (floor.allowance() > 0s && seconds < 1000) {
    floor.waited(1s, 1);
    seconds++;
  }
  EXPECT_GE(seconds, 60);
  EXPECT_LE(seconds, 61);
}

TEST(RateFloor, AFastStartAllowsNoLongerPause) {
  RateFloor floor(60s, 1024);
  floor.waited(1s, UINT64_MAX);
  EXPECT_EQ(floor.allowance(), 60s);
  floor.waited(61s, 0);
  EXPECT_EQ(floor.allowance(), 0s);
}

TEST(RateFloor, IgnoresNegativeWaits) {
  RateFloor floor(60s, 1024);
  floor.waited(-5s, 0);
  EXPECT_EQ(floor.allowance(), 60s);
}

}  // namespace
}  // namespace trainyard::net
