// An Optimizer changes parameters by their gradients.
//
//   sgd      v = momentum v + g;                w -= rate v
//   nag      v = momentum v + g;                w -= rate (g + momentum v)      Nesterov's
//   adam     m, v: means of g and g^2, corrected for their start;  w -= rate m / (sqrt(v) + epsilon)
//   rmsprop  v = gamma v + (1 - gamma) g^2;     w -= rate g / (sqrt(v) + epsilon)
//
// g is gradient_scale * gradient + weight_decay * w; parameters with one dimension (biases, scales
// of normalisation) have no decay. All arithmetic is element by element in f32, so ranks with equal
// parameters and gradients stay equal, bit for bit.
//
// Memory: sgd, nag and rmsprop hold one number per parameter, adam two.
// Threads: confined to one at a time. Errors: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "parallel/stored_tensors.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel {

enum class Method : uint8_t { sgd, nag, adam, rmsprop };
std::string_view to_string(Method method);
Result<Method> parse_method(std::string_view text);

struct OptimizerSettings {
  Method method = Method::sgd;
  double momentum = 0.9;
  double weight_decay = 0;
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-8;  // adam; rmsprop uses epsilon
  double gamma = 0.9;                                   // rmsprop
};

class Optimizer {
 public:
  Optimizer(OptimizerSettings settings, std::vector<NamedTensor> parameters);

  // Requires: every parameter has a gradient.
  void step(double rate, double gradient_scale);
  // The tensors that a checkpoint stores to continue exactly: "momentum.NAME", "square.NAME".
  std::vector<NamedTensor> state() const;
  int64_t steps_done() const { return steps_done_; }

 private:
  void update(size_t parameter, const at::Tensor& gradient, double rate);

  const OptimizerSettings settings_;
  const std::vector<NamedTensor> parameters_;
  std::vector<at::Tensor> momenta_, squares_;  // by parameter; empty where the method has none
  int64_t steps_done_ = 0;
};

}  // namespace trainyard::parallel
