// Applies a gradient to the values that a server stores.
//
//   sum        value += gradient: counts, and updates that workers computed themselves
//   sgd        value -= learning_rate * gradient
//   momentum   velocity = momentum * velocity + gradient; value -= learning_rate * velocity
//   adagrad    squares += gradient^2; value -= learning_rate * gradient / (sqrt(squares) + 1e-8)
//
// Threads: pure functions. Errors: none. The code is compiled without contraction, so that equal
// inputs give equal bits on every machine.
#pragma once

#include <cstdint>
#include <span>

namespace trainyard::parameter_server {

struct Rule {
  enum class Kind : uint8_t { sum, sgd, momentum, adagrad };
  Kind kind = Kind::sgd;
  float learning_rate = 0.01f;
  float momentum = 0.9f;
};

// Returns true if the rule stores one number of state for each value.
constexpr bool has_state(Rule::Kind kind) { return kind >= Rule::Kind::momentum; }

// Updates values and state in place. Requires: values and gradient have equal sizes; state has this
// size, too, if has_state(rule.kind), else it is empty.
void update(const Rule& rule, std::span<float> values, std::span<float> state,
            std::span<const float> gradient);

}  // namespace trainyard::parameter_server
