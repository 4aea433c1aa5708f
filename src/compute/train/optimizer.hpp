// Updates parameters by their gradient: stochastic gradient descent with momentum, or Adam.
//
// Threads: confined to one thread at a time. Errors: none.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::train {

enum class Method { sgd, adam };

Result<Method> parse_method(std::string_view name);  // "sgd", "adam"
std::string_view to_string(Method method);

struct OptimizerSettings {
  Method method = Method::sgd;
  float momentum = 0.9f;  // momentum of sgd; first decay of Adam
  // each step subtracts this share of every parameter, times the learning rate
  float weight_decay = 1e-4f;
};

class Optimizer {
 public:
  Optimizer(OptimizerSettings settings, size_t parameters);

  // Updates the parameters in place. Requires: both have the size that was given to the
  // constructor.
  void step(std::span<float> parameters, std::span<const float> gradient, float learning_rate);

 private:
  const OptimizerSettings settings_;
  std::vector<float> velocity_;  // running mean of gradients
  std::vector<float> squares_;   // Adam: running mean of their squares
  int64_t steps_ = 0;
};

// Returns the rate of a step, which decreases from full_rate at the first step to 0 at the last one
// along half a cosine.
float cosine_rate(float full_rate, int64_t step, int64_t steps);

}  // namespace trainyard::train
