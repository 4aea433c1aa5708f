// How a gradient moves parameters: stochastic gradient descent with momentum, or Adam.
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
  float momentum = 0.9f;       // of sgd; Adam's first decay
  float weight_decay = 1e-4f;  // taken off every parameter with each step, times the learning rate
};

class Optimizer {
 public:
  Optimizer(OptimizerSettings settings, size_t parameters);

  // Requires: both as long as said at construction.
  void step(std::span<float> parameters, std::span<const float> gradient, float learning_rate);

 private:
  const OptimizerSettings settings_;
  std::vector<float> velocity_;  // running mean of gradients
  std::vector<float> squares_;   // Adam: running mean of their squares
  int64_t steps_ = 0;
};

// From the full rate at the first step down to nothing at the last, along half a cosine: large steps first to
// get there, small ones last to settle.
float cosine_rate(float full_rate, int64_t step, int64_t steps);

}  // namespace trainyard::train
