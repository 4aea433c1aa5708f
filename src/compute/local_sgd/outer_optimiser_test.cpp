#include "local_sgd/outer_optimiser.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "local_sgd/replica.hpp"

namespace trainyard::local_sgd {
namespace {

TEST(OuterOptimiser, ReturnsTheMeanWithLearningRateOneAndNoMomentum) {
  const std::vector<float> start = {1, 2};
  const std::vector<float> trained[] = {{2, 2}, {4, -2}};  // weights 3 and 1
  std::vector<Share> shares;
  for (int region = 0; region < 2; ++region) {
    shares.push_back({region == 0 ? 3.0 : 1.0, {}});
    for (size_t i = 0; i < start.size(); ++i)
      shares.back().gradient.push_back(start[i] - trained[region][i]);
  }
  std::vector<float> parameters = start;
  OuterState state{{0, 0}};
  OuterOptimiser({.learning_rate = 1, .momentum = 0})
      .step(parameters, state, weighted_mean(shares));
  EXPECT_EQ(parameters, (std::vector<float>{2.5f, 1.0f}));
}

TEST(OuterOptimiser, StepsByNesterovsRule) {
  const struct {
    float learning_rate, momentum, gradient;
    float velocity, parameter;  // after each of two steps from 0 with the same gradient
    float velocity_again, parameter_again;
  } rows[] = {
      {1, 0, 2, 2, -2, 2, -4},
      {1, 0.5f, 2, 2, -3, 3, -6.5f},
      {0.5f, 0.5f, 2, 2, -1.5f, 3, -3.25f},
  };
  for (const auto& row : rows) {
    std::vector<float> parameters = {0};
    OuterState state{{0}};
    const OuterOptimiser optimiser({row.learning_rate, row.momentum});
    const std::vector<float> gradient = {row.gradient};
    optimiser.step(parameters, state, gradient);
    EXPECT_EQ(parameters[0], row.parameter);
    EXPECT_EQ(state.velocity[0], row.velocity);
    optimiser.step(parameters, state, gradient);
    EXPECT_EQ(parameters[0], row.parameter_again);
    EXPECT_EQ(state.velocity[0], row.velocity_again);
  }
}

TEST(WeightedMean, IsTheUnweightedMeanIfAllWeightsAreZero) {
  const std::vector<Share> shares = {{0, {1, 2}}, {0, {3, 6}}};
  EXPECT_EQ(weighted_mean(shares), (std::vector<float>{2, 4}));
}

TEST(Coding, DecodesWithinItsPrecisionAndRejectsOtherSizes) {
  const std::vector<float> values = {0, 1, -2.5f, 3.14159265f, 1e-3f};
  const struct {
    Coding coding;
    size_t bytes;
    float relative;
  } rows[] = {{Coding::f32, 20, 0},
              {Coding::f16, 10, 0x1p-11f},
              {Coding::bf16, 10, 0x1p-8f},
              {Coding::int8, 9, 0}};
  for (const auto& row : rows) {
    const std::string bytes = encode(row.coding, values);
    EXPECT_EQ(bytes.size(), row.bytes);
    EXPECT_EQ(bytes.size(), coded_bytes(row.coding, values.size()));
    const auto again = decode(row.coding, bytes, values.size());
    ASSERT_TRUE(again);
    for (size_t i = 0; i < values.size(); ++i)
      // The error of int8 is half of a 127th of the largest value.
      EXPECT_NEAR((*again)[i], values[i],
                  row.coding == Coding::int8 ? 3.15f / 254 : std::abs(values[i]) * row.relative);
    EXPECT_EQ(decode(row.coding, bytes, values.size() + 1).error().kind, Kind::corrupt);
    EXPECT_EQ(*parse_coding(to_string(row.coding)), row.coding);
  }
  EXPECT_FALSE(parse_coding("int4"));
}

TEST(Replica, AddsRoundingErrorsOfTheCodingToLaterOffers) {
  // A step of 1 + 2^-9 is rounded to 1 in bf16; the rounding errors add up and are sent with a
  // later offer.
  const float step = 1 + 0x1p-9f;
  Replica replica({0.0f}, "", {.learning_rate = 1, .momentum = 0}, Coding::bf16);
  for (int round = 0; round < 8; ++round) {
    const std::vector<float> trained = {replica.parameters()[0] - step};
    const auto offer = replica.offer(trained, 1);
    ASSERT_TRUE(offer);
    const auto averaged = replica.average(std::span(&*offer, 1));
    ASSERT_TRUE(averaged && replica.apply(*averaged));
  }
  EXPECT_NEAR(replica.parameters()[0], -8 * step, 0x1p-8);
  EXPECT_LT(replica.parameters()[0], -8.0f);
}

TEST(Replica, HasADigestOfItsStateAndRestoresTheStateOfAnother) {
  const OuterSettings outer;
  Replica one({1, 2, 3}, "charter", outer, Coding::f32);
  Replica other({1, 2, 3}, "charter", outer, Coding::f32);
  Replica third({9, 9, 9}, "another", outer, Coding::f32);
  EXPECT_EQ(one.digest(), other.digest());
  EXPECT_NE(one.digest(), third.digest());
  const std::vector<float> trained = {0, 0, 0};
  const auto offer = one.offer(trained, 1);
  const auto averaged = one.average(std::span(&*offer, 1));
  ASSERT_TRUE(averaged && one.apply(*averaged) && other.apply(*averaged));
  EXPECT_EQ(one.digest(), other.digest());
  ASSERT_TRUE(third.restore(one.snapshot(third.digest())));
  EXPECT_EQ(third.digest(), one.digest());
  EXPECT_EQ(third.charter(), "charter");
  EXPECT_EQ(third.round(), 1u);
  EXPECT_TRUE(one.snapshot(third.digest()).parameters.empty());  // equal digests: nothing to send
  EXPECT_EQ(third.restore({2, {}, "", "short", ""}).error().kind, Kind::corrupt);
  EXPECT_EQ(third.digest(), one.digest());
  const std::vector<float> broken = {0, NAN, 0};
  EXPECT_EQ(one.offer(broken, 1).error().kind, Kind::invalid);
}

}  // namespace
}  // namespace trainyard::local_sgd
