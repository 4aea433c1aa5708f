#include "train/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "base/check.hpp"
#include "base/enum_table.hpp"

namespace trainyard::train {
namespace {

constexpr float kSquaresDecay = 0.999f;  // as published
// avoids a division by zero for a parameter without gradients
constexpr float kSmallest = 1e-8f;

constexpr EnumTable<Method> kMethods{"optimizer", {{Method::sgd, "sgd"}, {Method::adam, "adam"}}};

}  // namespace

Result<Method> parse_method(std::string_view name) {
  if (const auto method = kMethods.find(name)) return *method;
  return invalid("unknown optimizer '" + std::string(name) + "': use sgd or adam");
}

std::string_view to_string(Method method) { return kMethods.text(method); }

Optimizer::Optimizer(OptimizerSettings settings, size_t parameters)
    : settings_(settings),
      velocity_(parameters),
      squares_(settings.method == Method::adam ? parameters : 0) {}

void Optimizer::step(std::span<float> parameters, std::span<const float> gradient,
                     float learning_rate) {
  CHECK(parameters.size() == velocity_.size() && gradient.size() == velocity_.size(),
        "parameters and gradient must have the size given to the constructor");
  ++steps_;
  const float momentum = settings_.momentum;
  const float shrink = 1.0f - learning_rate * settings_.weight_decay;
  if (settings_.method == Method::sgd) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      velocity_[i] = momentum * velocity_[i] + gradient[i];
      parameters[i] = shrink * parameters[i] - learning_rate * velocity_[i];
    }
    return;
  }
  // Corrects for the running means starting at 0.
  const float velocity_share = float(1.0 - std::pow(double(momentum), double(steps_)));
  const float squares_share = float(1.0 - std::pow(double(kSquaresDecay), double(steps_)));
  for (size_t i = 0; i < parameters.size(); ++i) {
    velocity_[i] = momentum * velocity_[i] + (1 - momentum) * gradient[i];
    squares_[i] = kSquaresDecay * squares_[i] + (1 - kSquaresDecay) * gradient[i] * gradient[i];
    const float mean = velocity_[i] / velocity_share;
    const float deviation = std::sqrt(squares_[i] / squares_share);
    parameters[i] = shrink * parameters[i] - learning_rate * mean / (deviation + kSmallest);
  }
}

float cosine_rate(float full_rate, int64_t step, int64_t steps) {
  const double done = double(step) / double(std::max<int64_t>(steps, 1));
  return float(double(full_rate) * 0.5 * (1.0 + std::cos(std::numbers::pi * done)));
}

}  // namespace trainyard::train
