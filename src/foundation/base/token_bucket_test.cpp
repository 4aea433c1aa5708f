#include "base/token_bucket.hpp"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

using namespace std::chrono_literals;

int taken(TokenBucket& bucket, TokenBucket::Time now) {
  int count = 0;
  while (bucket.take(now)) count++;
  return count;
}

TEST(TokenBucket, AllowsABurstAndThenTheRate) {
  TokenBucket bucket(10, 50, 0s);
  EXPECT_EQ(taken(bucket, 0s), 50);
  EXPECT_EQ(taken(bucket, 1s), 10);
  EXPECT_EQ(taken(bucket, 1050ms), 0);
  EXPECT_EQ(taken(bucket, 1100ms), 1);
}

TEST(TokenBucket, NeverSavesMoreThanItsBurst) {
  TokenBucket bucket(10, 50, 0s);
  EXPECT_EQ(taken(bucket, 24h), 50);
}

TEST(TokenBucket, NeverExceedsTheRatePlusOneBurst) {
  TokenBucket bucket(7, 3, 0s);
  int count = 0;
  for (int millisecond = 0; millisecond < 100'000; millisecond++)
    if (bucket.take(std::chrono::milliseconds(millisecond))) count++;
  EXPECT_LE(count, 7 * 100 + 3);
  EXPECT_GE(count, 7 * 100);
}

TEST(TokenBucket, GainsNothingFromATimeThatGoesBack) {
  TokenBucket bucket(10, 1, 10s);
  EXPECT_TRUE(bucket.take(10s));
  EXPECT_FALSE(bucket.take(5s));
  EXPECT_FALSE(bucket.take(10s));
  EXPECT_TRUE(bucket.take(10100ms));
}

TEST(TokenBucket, ChangesTheRateFromNowOn) {
  TokenBucket bucket(1, 100, 0s);
  bucket.change(1000, 10, 0s);
  EXPECT_EQ(taken(bucket, 0s), 10);
  EXPECT_EQ(taken(bucket, 5ms), 5);
  EXPECT_FALSE(bucket.is_full(5ms));
  EXPECT_TRUE(bucket.is_full(1s));
}

}  // namespace
}  // namespace trainyard
