// How regions that trained apart for a while become one model again.
//
// Each region steps H times by itself. What it moved is its outer gradient: parameters at the last meeting minus
// parameters now. The mean of the regions' outer gradients, weighted by what each has seen, moves the parameters of the
// last meeting, and from there all go on:
//
//   velocity   := momentum * velocity + gradient
//   parameters := parameters - learning_rate * (gradient + momentum * velocity)      (Nesterov)
//
//   learning_rate 1, momentum 0    local SGD; with weights that count samples, federated averaging
//   learning_rate 0.7, momentum 0.6..0.9    as DiLoCo does it: few meetings, and most of what many would give
//
// Threads: pure functions on plain values. Errors: none; what is Required is checked.
// Every region computes a step by itself from equal bytes, so it must give equal bits everywhere: compiled without
// contraction (CMakeLists.txt).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace trainyard::local_sgd {

struct OuterSettings {
  float learning_rate = 0.7f;
  // 0.9 where there are hundreds of meetings; with some dozens it overshoots: on the digits 0.6 loses nothing.
  float momentum = 0.6f;
};

// Kept between meetings; with the parameters it is all that a region must be told to take part.
struct OuterState {
  std::vector<float> velocity;
};

class OuterOptimiser {
 public:
  explicit OuterOptimiser(OuterSettings settings) : settings_(settings) {}
  // Requires: all three are equally long.
  void step(std::span<float> parameters, OuterState& state, std::span<const float> gradient) const;

 private:
  const OuterSettings settings_;
};

// One region's part of a mean.
struct Share {
  double weight = 0;  // how much it has seen, say samples; relative to the others'
  std::vector<float> gradient;
};

// The shares' mean by weight, added in their order; all weights 0: the plain mean.
// Requires: at least one share; all equally long; no weight is negative.
std::vector<float> weighted_mean(std::span<const Share> shares);

}  // namespace trainyard::local_sgd
