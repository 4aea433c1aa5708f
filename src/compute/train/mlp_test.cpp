#include "train/mlp.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "train/mlp_reference.hpp"
#include "train/optimizer.hpp"

namespace trainyard::train {
namespace {

constexpr Shape kShape{6, 5, 3};

struct Example {
  std::vector<float> input;
  int32_t label;
};

std::vector<Example> examples(const Shape& shape, size_t count, uint64_t seed) {
  SeededRandom random(seed);
  std::vector<Example> all;
  for (size_t n = 0; n < count; ++n) {
    Example example{{}, int32_t(random.below(shape.classes))};
    for (size_t i = 0; i < shape.inputs; ++i) {
      example.input.push_back(random.chance(4) ? 0.0f : float(random.below(1000)) / 1000.0f);
    }
    all.push_back(std::move(example));
  }
  return all;
}

std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

TEST(MlpReference, HasAGradientEqualToFiniteDifferencesOfTheLoss) {
  std::vector<double> parameters = doubles(initial_parameters(kShape, 3));
  for (const Example& example : examples(kShape, 5, 1)) {
    const auto input = doubles(example.input);
    const auto slopes = reference::gradient(kShape, parameters, input, example.label);
    for (size_t i = 0; i < parameters.size(); ++i) {
      constexpr double width = 1e-5;
      const double here = parameters[i];
      parameters[i] = here + width;
      const double above = reference::loss(kShape, parameters, input, example.label);
      parameters[i] = here - width;
      const double below = reference::loss(kShape, parameters, input, example.label);
      parameters[i] = here;
      EXPECT_NEAR(slopes[i], (above - below) / (2 * width), 1e-8) << "parameter " << i;
    }
  }
}

TEST(Mlp, MatchesTheReference) {
  const auto parameters = initial_parameters(kShape, 7);
  Workspace workspace;
  for (const Example& example : examples(kShape, 50, 2)) {
    std::vector<double> slopes(kShape.parameters());
    const RowLoss row =
        add_gradient(kShape, parameters, example.input, example.label, slopes, workspace);
    const auto expected =
        reference::gradient(kShape, doubles(parameters), doubles(example.input), example.label);
    EXPECT_NEAR(double(row.loss),
                reference::loss(kShape, doubles(parameters), doubles(example.input), example.label),
                1e-5);
    for (size_t i = 0; i < slopes.size(); ++i)
      EXPECT_NEAR(slopes[i], expected[i], 1e-6) << "parameter " << i;
    EXPECT_EQ(row.correct, predict(kShape, parameters, example.input, workspace) == example.label);
  }
}

TEST(Mlp, MatchesTheReferenceAfterTenTrainingSteps) {
  constexpr float rate = 0.1f;
  constexpr double momentum = 0.9;
  constexpr double decay = 1e-4;
  std::vector<float> fast = initial_parameters(kShape, 5);
  std::vector<double> slow = doubles(fast);
  std::vector<double> velocity(slow.size());
  Optimizer optimizer({Method::sgd, float(momentum), float(decay)}, fast.size());
  Workspace workspace;
  for (uint64_t step = 0; step < 10; ++step) {
    const auto batch = examples(kShape, 8, 100 + step);
    std::vector<double> fast_sum(fast.size());
    std::vector<double> slow_sum(fast.size());
    for (const Example& example : batch) {
      add_gradient(kShape, fast, example.input, example.label, fast_sum, workspace);
      const auto slopes = reference::gradient(kShape, slow, doubles(example.input), example.label);
      for (size_t i = 0; i < slopes.size(); ++i) slow_sum[i] += slopes[i];
    }
    std::vector<float> mean;
    for (const double sum : fast_sum) mean.push_back(float(sum / double(batch.size())));
    optimizer.step(fast, mean, rate);
    for (size_t i = 0; i < slow.size(); ++i) {
      velocity[i] = momentum * velocity[i] + slow_sum[i] / double(batch.size());
      slow[i] = (1 - double(rate) * decay) * slow[i] - double(rate) * velocity[i];
    }
  }
  for (size_t i = 0; i < slow.size(); ++i)
    EXPECT_NEAR(double(fast[i]), slow[i], 1e-5) << "parameter " << i;
}

TEST(Mlp, SumsGradientsIndependentlyOfTheOrderOfRows) {
  const auto parameters = initial_parameters(kShape, 7);
  const auto rows = examples(kShape, 200, 9);
  Workspace workspace;
  std::vector<double> forwards(kShape.parameters());
  std::vector<double> backwards(kShape.parameters());
  std::vector<double> in_two_parts(kShape.parameters());
  for (size_t i = 0; i < rows.size(); ++i) {
    add_gradient(kShape, parameters, rows[i].input, rows[i].label, forwards, workspace);
    const Example& mirrored = rows[rows.size() - 1 - i];
    add_gradient(kShape, parameters, mirrored.input, mirrored.label, backwards, workspace);
  }
  for (const size_t first : {size_t(0), size_t(1)}) {
    std::vector<double> part(kShape.parameters());
    for (size_t i = first; i < rows.size(); i += 2) {
      add_gradient(kShape, parameters, rows[i].input, rows[i].label, part, workspace);
    }
    for (size_t i = 0; i < part.size(); ++i) in_two_parts[i] += part[i];
  }
  EXPECT_EQ(forwards, backwards);
  EXPECT_EQ(forwards, in_two_parts);
}

TEST(Mlp, DrawsInitialWeightsFromTheSeedWithHesVariance) {
  const Shape shape{64, 256, 10};
  EXPECT_EQ(initial_parameters(shape, 1), initial_parameters(shape, 1));
  EXPECT_NE(initial_parameters(shape, 1), initial_parameters(shape, 2));
  const auto parameters = initial_parameters(shape, 1);
  double squares = 0;
  for (size_t i = 0; i < shape.hidden_bias(); ++i)
    squares += double(parameters[i]) * double(parameters[i]);
  EXPECT_NEAR(squares / double(shape.hidden_bias()), 2.0 / 64, 0.002);
  for (size_t i = shape.hidden_bias(); i < shape.class_weight(); ++i) EXPECT_EQ(parameters[i], 0);
}

TEST(Optimizer, BothMethodsFindTheMinimumOfAQuadratic) {
  for (const Method method : {Method::sgd, Method::adam}) {
    Optimizer optimizer({method, 0.9f, 0.0f}, 2);
    std::vector<float> point{3.0f, -2.0f};
    for (int64_t step = 0; step < 500; ++step) {
      const std::vector<float> slopes{2 * (point[0] - 1), 2 * (point[1] - 1)};
      optimizer.step(point, slopes, cosine_rate(0.05f, step, 500));
    }
    EXPECT_NEAR(point[0], 1, 1e-3) << to_string(method);
    EXPECT_NEAR(point[1], 1, 1e-3) << to_string(method);
  }
  EXPECT_FLOAT_EQ(cosine_rate(0.5f, 0, 10), 0.5f);
  EXPECT_NEAR(cosine_rate(0.5f, 10, 10), 0, 1e-7);
  EXPECT_FALSE(parse_method("magic"));
}

}  // namespace
}  // namespace trainyard::train
