#include "parameter_server/update.hpp"

#include <cmath>

#include "base/check.hpp"

namespace trainyard::parameter_server {

// avoids a division by zero if a parameter has had no gradient yet
constexpr float kSmallest = 1e-8f;

void update(const Rule& rule, std::span<float> values, std::span<float> state,
            std::span<const float> gradient) {
  CHECK(values.size() == gradient.size() &&
            state.size() == (has_state(rule.kind) ? values.size() : 0),
        "values, gradient and state must have equal sizes");
  const float learning_rate = rule.learning_rate;
  switch (rule.kind) {
    case Rule::Kind::sum:
      for (size_t i = 0; i < values.size(); ++i) values[i] += gradient[i];
      return;
    case Rule::Kind::sgd:
      for (size_t i = 0; i < values.size(); ++i) values[i] -= learning_rate * gradient[i];
      return;
    case Rule::Kind::momentum:
      for (size_t i = 0; i < values.size(); ++i) {
        state[i] = rule.momentum * state[i] + gradient[i];
        values[i] -= learning_rate * state[i];
      }
      return;
    case Rule::Kind::adagrad:
      for (size_t i = 0; i < values.size(); ++i) {
        state[i] += gradient[i] * gradient[i];
        values[i] -= learning_rate * gradient[i] / (std::sqrt(state[i]) + kSmallest);
      }
      return;
  }
}

}  // namespace trainyard::parameter_server
