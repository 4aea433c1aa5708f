#include "local_sgd/outer_optimiser.hpp"

#include "base/check.hpp"

namespace trainyard::local_sgd {

void OuterOptimiser::step(std::span<float> parameters, OuterState& state,
                          std::span<const float> gradient) const {
  CHECK(parameters.size() == gradient.size() && state.velocity.size() == gradient.size(),
        "parameters, gradient and velocity must have equal sizes");
  const float momentum = settings_.momentum;
  const float learning_rate = settings_.learning_rate;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const float velocity = momentum * state.velocity[i] + gradient[i];
    state.velocity[i] = velocity;
    parameters[i] -= learning_rate * (gradient[i] + momentum * velocity);
  }
}

std::vector<float> weighted_mean(std::span<const Share> shares) {
  CHECK(!shares.empty(), "a mean needs at least one share");
  double total = 0;
  for (const Share& share : shares) {
    CHECK(share.weight >= 0 && share.gradient.size() == shares[0].gradient.size(),
          "weights must not be negative, and gradients must have equal sizes");
    total += share.weight;
  }
  std::vector<double> sums(shares[0].gradient.size());
  for (const Share& share : shares) {
    const double part = total > 0 ? share.weight / total : 1.0 / double(shares.size());
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += part * double(share.gradient[i]);
  }
  return {sums.begin(), sums.end()};
}

}  // namespace trainyard::local_sgd
