// Combines the parameters of regions that trained separately into one model.
//
// Each region takes H steps by itself. Its outer gradient is the parameters after the last round
// minus its parameters now. The mean of the outer gradients, weighted by the samples that each
// region has seen, moves the parameters of the last round, and all regions continue from there:
//
//   velocity   := momentum * velocity + gradient
//   parameters := parameters - learning_rate * (gradient + momentum * velocity)      (Nesterov)
//
//   learning_rate 1, momentum 0             local SGD; with weights that count samples, federated
//                                           averaging
//   learning_rate 0.7, momentum 0.6..0.9    DiLoCo: few rounds, with most of the accuracy of many
//
// Threads: pure functions on plain values. Errors: none; requirements are checked. Every region
// computes a step from equal bytes and must get equal bits, on every machine. So the code is
// compiled without contraction (CMakeLists.txt).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace trainyard::local_sgd {

struct OuterSettings {
  float learning_rate = 0.7f;
  // 0.9 suits hundreds of rounds, but overshoots with some dozens of rounds. 0.6 loses no accuracy
  // on the digits example.
  float momentum = 0.6f;
};

// The state between rounds. A joining region needs it in addition to the parameters.
struct OuterState {
  std::vector<float> velocity;
};

class OuterOptimiser {
 public:
  explicit OuterOptimiser(OuterSettings settings) : settings_(settings) {}
  // Applies an outer step in place. Requires: parameters, velocity and gradient have equal sizes.
  void step(std::span<float> parameters, OuterState& state, std::span<const float> gradient) const;

 private:
  const OuterSettings settings_;
};

// The outer gradient of one region and its weight in the mean.
struct Share {
  double weight = 0;  // relative to the other weights; for instance, samples seen
  std::vector<float> gradient;
};

// Returns the weighted mean, summed in the order of the shares; the unweighted mean if all weights
// are 0.
// Requires: at least one share; equal sizes; no weight is negative.
std::vector<float> weighted_mean(std::span<const Share> shares);

}  // namespace trainyard::local_sgd
