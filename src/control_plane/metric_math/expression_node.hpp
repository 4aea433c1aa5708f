// Defines the nodes of a parsed expression, and the functions that its evaluation calls.
//
// Threads: plain values and pure functions. Errors: invalid, with the error in the expression.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "metric_math/expression.hpp"

namespace trainyard::metric_math {

enum class Operator {
  add,
  subtract,
  multiply,
  divide,
  power,
  equal,
  unequal,
  less,
  less_or_equal,
  greater,
  greater_or_equal,
  both,
  either,
};

struct Expression::Node {
  enum class Kind { number, text, id, negation, operation, call };
  Kind kind = Kind::number;
  double number = 0;
  std::string text;  // a text, an id, or a function's name in upper case
  Operator operation = Operator::add;
  std::vector<std::shared_ptr<const Node>> parts;
};

// A ValueBudget counts the values that an evaluation computes, and limits them.
class ValueBudget {
 public:
  Result<void> use(size_t values);

 private:
  size_t left_ = kValuesComputedMax;
};

// Applies an operator to two values. Two lists of series must have the same length.
Result<Value> apply(Operator operation, const Value& left, const Value& right, ValueBudget& budget);

struct Argument {
  Value value;
  std::string text;  // the quoted or bare word if is_text, otherwise ""
  bool is_text = false;
};

// The numbers of arguments that a function accepts.
struct Arity {
  size_t least = 1, most = 1;
};
// Returns nullopt for an unknown function.
std::optional<Arity> arity_of(std::string_view function);
// Requires: the number of arguments fits arity_of(function).
Result<Value> call(std::string_view function, std::vector<Argument> arguments, const Scope& scope,
                   ValueBudget& budget);

}  // namespace trainyard::metric_math
