// A Query is a parsed Logs Insights query: a list of commands, whose expressions are trees.
//
// Threads: immutable once parsed; runs share it. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "insights/functions.hpp"
#include "insights/pattern.hpp"
#include "insights/value.hpp"

namespace trainyard::insights {

struct Expression;
using ExpressionPointer = std::unique_ptr<const Expression>;

enum class Operator {
  or_else,
  and_also,
  negate_condition,
  equal,
  not_equal,
  less,
  at_most,
  greater,
  at_least,
  like,      // the second part is a pattern
  not_like,  // the second part is a pattern
  in_list,   // the parts after the first are the list
  not_in_list,
  add,
  subtract,
  multiply,
  divide,
  remainder,
  power,
  negate_number
};

struct Expression {
  enum class Kind { constant, field, operation, call };
  Kind kind = Kind::constant;  // tells which of the next four members is used
  Value constant = {};
  std::string field = {};  // its name
  Operator operation = Operator::equal;
  const Function* function = nullptr;                // in the table of functions.cpp
  std::vector<ExpressionPointer> parts = {};         // the operands or arguments
  std::shared_ptr<const Pattern> pattern = nullptr;  // for like and not_like
};

// A Column is an expression with the name of its column: the name after `as`, or the text of the
// expression.
struct Column {
  ExpressionPointer expression;
  std::string name;
};

enum class AggregateKind {
  count,
  count_distinct,
  sum,
  average,
  minimum,
  maximum,
  percentile,
  deviation,
  earliest,
  latest,
  sorts_first,
  sorts_last
};

struct Aggregate {
  AggregateKind kind = AggregateKind::count;
  ExpressionPointer of;   // nullptr: count(*)
  double percentile = 0;  // 0 to 100
  std::string name;
};

struct FieldsCommand {
  std::vector<Column> columns;
};
struct DisplayCommand {
  std::vector<Column> columns;
};
struct FilterCommand {
  ExpressionPointer condition;
};
struct ParseCommand {
  ExpressionPointer of;  // nullptr: the message
  std::shared_ptr<const Pattern> pattern;
  std::vector<std::string> names;  // the names of the pattern's groups, in order
};
struct StatsCommand {
  std::vector<Aggregate> aggregates;
  std::vector<Column> groups;
};
struct SortCommand {
  struct Key {
    ExpressionPointer expression;
    bool descending = false;
  };
  std::vector<Key> keys;
};
struct LimitCommand {
  size_t rows = 0;
};
struct DedupCommand {
  std::vector<ExpressionPointer> keys;
};

using Command = std::variant<FieldsCommand, DisplayCommand, FilterCommand, ParseCommand,
                             StatsCommand, SortCommand, LimitCommand, DedupCommand>;

struct Query {
  std::vector<Command> commands;
};

}  // namespace trainyard::insights
