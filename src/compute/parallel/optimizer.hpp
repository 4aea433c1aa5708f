// An Optimizer changes parameters by their gradients.
//
//   sgd      v = momentum v + g;                w -= rate v
//   nag      v = momentum v + g;                w -= rate (g + momentum v)      Nesterov's
//   adam     m, v: means of g and g^2, corrected for their start;  w -= rate m / (sqrt(v) + epsilon)
//   adamw    as adam without decay in g;        w -= rate decay w before it
//   rmsprop  v = gamma v + (1 - gamma) g^2;     w -= rate g / (sqrt(v) + epsilon)
//   lars     v = momentum v + trust rate g;     w -= v                          You et al. 2017
//            trust = trust_coefficient |w| / (|g without decay| + decay |w|)
//   lamb     u = m / (sqrt(v) + epsilon) + decay w, m and v as in adam;  w -= rate |w| / |u| u
//                                                                               You et al. 2020
//
// g is gradient_scale * gradient + decay * w, with decay = weight_decay. Parameters with one
// dimension (biases, scales of normalisation) have no decay, and a trust ratio of 1. A ratio in
// which |w|, |g| or |u| is 0 is 1. With clip_norm, gradient_scale is first reduced so that the norm
// of all scaled gradients together is at most clip_norm.
//
// The arithmetic is element by element in f32, so ranks with equal parameters and gradients stay
// equal, bit for bit, and so do ranks that each hold parts of the parameters. Norms (clip_norm,
// lars, lamb) are sums of squares in f64: their last bits depend on how parameters are divided into
// parts, so the steps then agree within a rounding of f32.
//
// Memory: sgd, nag, lars and rmsprop store one number per parameter; adam, adamw and lamb store
// two. A step needs temporary memory for two numbers per element of the largest part; lamb also
// needs one per element of all parts.
// Threads: confined to one at a time. Errors: none of its own; those of SumOverRanks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "parallel/stored_tensors.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel {

enum class Method : uint8_t { sgd, nag, adam, rmsprop, adamw, lars, lamb };
std::string_view to_string(Method method);
Result<Method> parse_method(std::string_view text);

// Returns how many numbers a method stores for each parameter: 1 or 2.
int numbers_held(Method method);

struct OptimizerSettings {
  Method method = Method::sgd;
  double momentum = 0.9;
  double weight_decay = 0;
  double beta_1 = 0.9, beta_2 = 0.999, epsilon = 1e-8;  // adam, adamw, lamb; rmsprop uses epsilon
  double gamma = 0.9;                                   // rmsprop
  double trust_coefficient = 0.001;                     // lars
  double clip_norm = 0;                                 // 0: no limit
};

// An OptimizedPart is consecutive elements of a parameter that an optimizer changes.
struct OptimizedPart {
  std::string name;
  at::Tensor weights;
  at::Tensor gradient;   // undefined: the step uses weights.grad()
  size_t parameter = 0;  // an index below `parameters`; parts of one parameter share its norms
  bool decays = true;    // the parameter has more than one dimension
};

// Replaces each number by its sum over the ranks that have parts of the same parameters.
using SumOverRanks = std::function<Result<void>(std::span<double>)>;

class Optimizer {
 public:
  Optimizer(OptimizerSettings settings, std::vector<NamedTensor> parameters);
  // `parameters` is the number of parameters of which any rank has parts; equal on all ranks.
  Optimizer(OptimizerSettings settings, std::vector<OptimizedPart> parts, size_t parameters);

  // Requires: every parameter has a gradient.
  void step(double rate, double gradient_scale);
  // Steps with norms over all ranks. After an error no weight has changed, and the optimizer must
  // not be used again: the group has ended.
  Result<void> step(double rate, double gradient_scale, const SumOverRanks& sum);
  // Returns the tensors that a checkpoint needs to continue exactly: "momentum.NAME",
  // "square.NAME".
  std::vector<NamedTensor> state() const;
  int64_t steps_done() const { return steps_done_; }
  // Sets the number of steps done, after their state was assigned to state().
  void set_steps_done(int64_t steps) { steps_done_ = steps; }

 private:
  bool uses_norms() const {
    return settings_.method == Method::lars || settings_.method == Method::lamb;
  }
  const at::Tensor& gradient_of(const OptimizedPart& part) const;
  Result<double> clipped_scale(double scale, const SumOverRanks& sum) const;
  at::Tensor scaled_gradient(const OptimizedPart& part, double scale) const;
  // Updates adam's means, and returns the divisor of the update.
  at::Tensor adam_width(size_t part, const at::Tensor& gradient);
  void update(size_t part, double rate, double scale);
  Result<void> step_by_norms(double rate, double scale, const SumOverRanks& sum);
  double trust(const OptimizedPart& part, std::span<const double> squares) const;

  const OptimizerSettings settings_;
  const std::vector<OptimizedPart> parts_;
  const size_t parameters_;
  std::vector<at::Tensor> momenta_, squares_;  // by part; empty if the method has none
  int64_t steps_done_ = 0;
};

// Returns the sum of the squares of contiguous f32 values, in f64. The order of additions depends
// only on their number.
double sum_of_squares(const at::Tensor& values);

}  // namespace trainyard::parallel
