#include "base/arithmetic.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace trainyard {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max(),
                  kMin = std::numeric_limits<int64_t>::min();

TEST(Arithmetic, CheckedReturnsNulloptOnOverflow) {
  EXPECT_EQ(checked_add<int64_t>(kMax - 1, 1), kMax);
  EXPECT_FALSE(checked_add<int64_t>(kMax, 1));
  EXPECT_FALSE(checked_add<int64_t>(kMin, -1));
  EXPECT_EQ(checked_mul<int64_t>(1 << 20, 1 << 20), int64_t{1} << 40);
  EXPECT_FALSE(checked_mul<int64_t>(kMax, 2));
  EXPECT_FALSE(checked_mul<int64_t>(kMin, -1));
  EXPECT_FALSE(checked_add<uint32_t>(UINT32_MAX, 1));
}

TEST(Arithmetic, SaturatingReturnsTheNearestLimit) {
  EXPECT_EQ(saturating_add<uint32_t>(2147483647u + 2147483647u, 2), UINT32_MAX);
  EXPECT_EQ(saturating_add<int64_t>(kMin, -1), kMin);
  EXPECT_EQ(saturating_add<int64_t>(kMax, 1), kMax);
  EXPECT_EQ(saturating_mul<int64_t>(kMax, 2), kMax);
  EXPECT_EQ(saturating_mul<int64_t>(kMax, -2), kMin);
  EXPECT_EQ(saturating_mul<int64_t>(kMin, -1), kMax);
}

TEST(Arithmetic, SaturatingCastLimitsDoublesToTheType) {
  EXPECT_EQ(saturating_cast<int64_t>(1e308), kMax);
  EXPECT_EQ(saturating_cast<int64_t>(-INFINITY), kMin);
  EXPECT_EQ(saturating_cast<int64_t>(NAN), 0);
  EXPECT_EQ(saturating_cast<int64_t>(0x1p63), kMax);
  EXPECT_EQ(saturating_cast<uint32_t>(-1.0), 0u);
  EXPECT_EQ(saturating_cast<uint32_t>(7.9), 7u);
}

TEST(Arithmetic, SaturatesSecondsAndInstants) {
  EXPECT_EQ(saturating_seconds(2), 2s);
  EXPECT_EQ(saturating_seconds(kMax), Duration{kMax});
  EXPECT_EQ(saturating_add(from_milliseconds(kMax - 5), Duration{10}), from_milliseconds(kMax));
}

}  // namespace
}  // namespace trainyard
