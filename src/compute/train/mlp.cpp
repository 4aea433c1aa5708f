#include "train/mlp.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.hpp"
#include "base/random.hpp"

namespace trainyard::train {
namespace {

// Returns a number in (0, 1]: never 0, whose logarithm is infinite.
double uniform(SeededRandom& random) { return (double(random.next() >> 11) + 1.0) * 0x1.0p-53; }

// Computes to[j] += factor * from[j]: the inner loop, over contiguous memory, so that it
// vectorises.
inline void add_scaled(float* __restrict to, const float* __restrict from, float factor,
                       size_t size) {
  for (size_t j = 0; j < size; ++j) to[j] += factor * from[j];
}

// Rounds to the nearest multiple of kSlopeGrain: at the size of kLarge, that is the resolution of a
// double. Holds for slopes below 2^16; larger ones are rounded more coarsely.
inline double on_grain(float slope) {
  constexpr double kLarge = 0x1.8p52 * kSlopeGrain;
  return (double(slope) + kLarge) - kLarge;
}

// Computes sums[j] += factor * from[j], exactly.
inline void sum_scaled(double* __restrict sums, const float* __restrict from, float factor,
                       size_t size) {
  for (size_t j = 0; j < size; ++j) sums[j] += on_grain(factor * from[j]);
}

void forward(const Shape& shape, std::span<const float> parameters, std::span<const float> input,
             Workspace& workspace) {
  CHECK(parameters.size() == shape.parameters() && input.size() == shape.inputs,
        "parameters and input must have the sizes of the shape");
  const float* hidden_weight = &parameters[shape.hidden_weight()];  // (inputs, hidden)
  const float* class_weight = &parameters[shape.class_weight()];    // (hidden, classes)

  const auto hidden_bias = parameters.subspan(shape.hidden_bias(), shape.hidden);
  workspace.hidden.assign(hidden_bias.begin(), hidden_bias.end());
  for (size_t i = 0; i < shape.inputs; ++i) {
    if (input[i] == 0) continue;  // half of the pixels of a digit are background
    add_scaled(workspace.hidden.data(), hidden_weight + i * shape.hidden, input[i], shape.hidden);
  }
  for (float& value : workspace.hidden) value = std::max(value, 0.0f);

  const auto class_bias = parameters.subspan(shape.class_bias(), shape.classes);
  workspace.scores.assign(class_bias.begin(), class_bias.end());
  for (size_t j = 0; j < shape.hidden; ++j) {
    if (workspace.hidden[j] == 0) continue;
    add_scaled(workspace.scores.data(), class_weight + j * shape.classes, workspace.hidden[j],
               shape.classes);
  }
}

int32_t largest(std::span<const float> scores) {
  return int32_t(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

}  // namespace

std::vector<float> initial_parameters(const Shape& shape, uint64_t seed) {
  SeededRandom random(seed);
  std::vector<float> parameters(shape.parameters(), 0.0f);
  const auto fill = [&](size_t begin, size_t count, size_t fan_in) {
    const double deviation = std::sqrt(2.0 / double(fan_in));
    for (size_t i = 0; i < count; ++i) {
      // Box-Muller transform: two uniform numbers give a normal one.
      const double radius = std::sqrt(-2.0 * std::log(uniform(random)));
      const double angle = 2.0 * std::numbers::pi * uniform(random);
      parameters[begin + i] = float(deviation * radius * std::cos(angle));
    }
  };
  fill(shape.hidden_weight(), shape.inputs * shape.hidden, shape.inputs);
  fill(shape.class_weight(), shape.hidden * shape.classes, shape.hidden);
  return parameters;
}

RowLoss add_gradient(const Shape& shape, std::span<const float> parameters,
                     std::span<const float> input, int32_t label, std::span<double> gradient,
                     Workspace& workspace) {
  CHECK(gradient.size() == shape.parameters(), "gradient must have the size of the parameters");
  CHECK(label >= 0 && size_t(label) < shape.classes, "label must be one of the classes");
  forward(shape, parameters, input, workspace);

  // Softmax and cross entropy; the largest score is subtracted first, so that no exponential
  // overflows.
  std::vector<float>& scores = workspace.scores;
  RowLoss row;
  row.correct = largest(scores) == label;
  const float top = *std::max_element(scores.begin(), scores.end());
  const float label_score = scores[size_t(label)] - top;
  float sum = 0;
  for (float& score : scores) sum += score = std::exp(score - top);
  row.loss = std::log(sum) - label_score;

  // d loss / d scores = softmax(scores) - one_hot(label)
  for (float& score : scores) score /= sum;
  scores[size_t(label)] -= 1.0f;

  const float* class_weight = &parameters[shape.class_weight()];
  double* class_weight_slope = &gradient[shape.class_weight()];
  workspace.hidden_slope.assign(shape.hidden, 0.0f);
  for (size_t j = 0; j < shape.hidden; ++j) {
    if (workspace.hidden[j] == 0) continue;  // the gradient of relu is 0
    sum_scaled(class_weight_slope + j * shape.classes, scores.data(), workspace.hidden[j],
               shape.classes);
    float slope = 0;
    for (size_t c = 0; c < shape.classes; ++c)
      slope += class_weight[j * shape.classes + c] * scores[c];
    workspace.hidden_slope[j] = slope;
  }
  sum_scaled(&gradient[shape.class_bias()], scores.data(), 1.0f, shape.classes);

  double* hidden_weight_slope = &gradient[shape.hidden_weight()];
  for (size_t i = 0; i < shape.inputs; ++i) {
    if (input[i] == 0) continue;
    sum_scaled(hidden_weight_slope + i * shape.hidden, workspace.hidden_slope.data(), input[i],
               shape.hidden);
  }
  sum_scaled(&gradient[shape.hidden_bias()], workspace.hidden_slope.data(), 1.0f, shape.hidden);
  return row;
}

int32_t predict(const Shape& shape, std::span<const float> parameters, std::span<const float> input,
                Workspace& workspace) {
  forward(shape, parameters, input, workspace);
  return largest(workspace.scores);
}

}  // namespace trainyard::train
