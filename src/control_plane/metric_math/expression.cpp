#include "metric_math/expression.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "base/text.hpp"
#include "metric_math/expression_node.hpp"

namespace trainyard::metric_math {
namespace {

using Node = Expression::Node;
using NodePointer = std::shared_ptr<const Node>;

// The words that are arguments of functions, not ids.
constexpr std::string_view kWords[] = {"REPEAT", "LINEAR", "ASC", "DESC"};
// Functions whose second argument may be the name of a statistic: SORT(METRICS(), AVG, DESC, 3).
constexpr std::string_view kSortStatistics[] = {"AVG", "MIN", "MAX", "SUM", "LAST", "FIRST"};

bool is_word(std::string_view upper) {
  return std::ranges::find(kWords, upper) != std::end(kWords) ||
         std::ranges::find(kSortStatistics, upper) != std::end(kSortStatistics);
}

// The grammar, from the loosest binding:
//   either:  both {("OR" | "||") both}
//   both:    compared {("AND" | "&&") compared}
//   compared: sum [("==" | "!=" | "<" | "<=" | ">" | ">=") sum]
//   sum:     product {("+" | "-") product}
//   product: power {("*" | "/") power}
//   power:   unary ["^" power]
//   unary:   ["-" | "+"] unary | primary
//   primary: number | 'text' | id | FUNCTION "(" [either {"," either}] ")" | "(" either ")"
//          | "[" either {"," either} "]"
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<NodePointer> parse() {
    auto root = TRY(either());
    if (!token().empty()) return syntax();
    return root;
  }

  std::set<std::string> ids;
  bool all_metrics = false;

 private:
  Error syntax() {
    const std::string at(token());
    return invalid(at.empty() ? "Syntax error: the expression ends too early"
                              : "Syntax error near '" + shorten(at, 40) + "'");
  }

  // Returns the next token without consuming it; "" at the end.
  std::string_view token() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    const std::string_view rest = text_.substr(at_);
    if (rest.empty()) return rest;
    const char first = rest[0];
    size_t length = 1;
    if (first == '\'' || first == '"') {
      const size_t end = rest.find(first, 1);
      length = end == std::string_view::npos ? rest.size() : end + 1;
    } else if (std::isalpha(static_cast<unsigned char>(first)) || first == '_') {
      while (length < rest.size() &&
             (std::isalnum(static_cast<unsigned char>(rest[length])) || rest[length] == '_'))
        ++length;
    } else if (std::isdigit(static_cast<unsigned char>(first)) || first == '.') {
      while (length < rest.size() &&
             (std::isalnum(static_cast<unsigned char>(rest[length])) || rest[length] == '.' ||
              ((rest[length] == '-' || rest[length] == '+') &&
               (rest[length - 1] == 'e' || rest[length - 1] == 'E'))))
        ++length;
    } else if (rest.size() > 1) {
      const std::string_view two = rest.substr(0, 2);
      if (two == "==" || two == "!=" || two == "<=" || two == ">=" || two == "&&" || two == "||")
        length = 2;
    }
    return rest.substr(0, length);
  }

  bool take(std::string_view what) {
    const std::string_view next = token();
    if (!equals_ignoring_case(next, what)) return false;
    at_ += next.size();
    return true;
  }

  static NodePointer join(Operator operation, NodePointer left, NodePointer right) {
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::operation;
    node->operation = operation;
    node->parts = {std::move(left), std::move(right)};
    return node;
  }

  struct Sign {
    std::string_view text;
    Operator operation;
  };

  // Reads the operands of a left-associative level.
  template <size_t count>
  Result<NodePointer> chain(const Sign (&signs)[count], Result<NodePointer> (Parser::*next)()) {
    auto left = TRY((this->*next)());
    for (int links = 0;; ++links) {
      const Sign* found = nullptr;
      for (const Sign& sign : signs)
        if (!found && take(sign.text)) found = &sign;
      if (!found) return left;
      // A chain becomes a tree that is as deep as the chain is long.
      if (++chained_ > kExpressionLevelsMax * 4) return invalid("The expression is too long");
      left = join(found->operation, std::move(left), TRY((this->*next)()));
    }
  }

  Result<NodePointer> either() {
    if (++level_ > kExpressionLevelsMax) return invalid("The expression is nested too deeply");
    static constexpr Sign kSigns[] = {{"OR", Operator::either}, {"||", Operator::either}};
    auto node = TRY(chain(kSigns, &Parser::both));
    --level_;
    return node;
  }
  Result<NodePointer> both() {
    static constexpr Sign kSigns[] = {{"AND", Operator::both}, {"&&", Operator::both}};
    return chain(kSigns, &Parser::compared);
  }
  Result<NodePointer> compared() {
    static constexpr Sign kSigns[] = {
        {"==", Operator::equal},         {"!=", Operator::unequal},
        {"<=", Operator::less_or_equal}, {">=", Operator::greater_or_equal},
        {"<", Operator::less},           {">", Operator::greater}};
    return chain(kSigns, &Parser::sum);
  }
  Result<NodePointer> sum() {
    static constexpr Sign kSigns[] = {{"+", Operator::add}, {"-", Operator::subtract}};
    return chain(kSigns, &Parser::product);
  }
  Result<NodePointer> product() {
    static constexpr Sign kSigns[] = {{"*", Operator::multiply}, {"/", Operator::divide}};
    return chain(kSigns, &Parser::power);
  }
  Result<NodePointer> power() {
    if (++level_ > kExpressionLevelsMax) return invalid("The expression is nested too deeply");
    auto base = TRY(unary());
    if (take("^")) base = join(Operator::power, std::move(base), TRY(power()));
    --level_;
    return base;
  }
  Result<NodePointer> unary() {
    if (++level_ > kExpressionLevelsMax) return invalid("The expression is nested too deeply");
    auto node = [&]() -> Result<NodePointer> {
      if (take("+")) return unary();
      if (!take("-")) return primary();
      auto negation = std::make_shared<Node>();
      negation->kind = Node::Kind::negation;
      negation->parts = {TRY(unary())};
      return NodePointer(std::move(negation));
    }();
    --level_;
    return node;
  }

  Result<std::vector<NodePointer>> list(std::string_view end) {
    std::vector<NodePointer> parts;
    if (take(end)) return parts;
    do {
      parts.push_back(TRY(either()));
    } while (take(","));
    if (!take(end)) return syntax();
    return parts;
  }

  Result<NodePointer> primary() {
    const std::string_view next = token();
    if (next.empty()) return syntax();
    if (take("(")) {
      auto inner = TRY(either());
      if (!take(")")) return syntax();
      return inner;
    }
    if (take("[")) {
      auto node = std::make_shared<Node>();
      node->kind = Node::Kind::call;
      node->text = "[]";
      node->parts = TRY(list("]"));
      if (node->parts.empty()) return syntax();
      return NodePointer(std::move(node));
    }
    const char first = next[0];
    if (std::isdigit(static_cast<unsigned char>(first)) || first == '.') return number(next);
    if (first == '\'' || first == '"') return quoted(next);
    if (std::isalpha(static_cast<unsigned char>(first)) || first == '_') return named(next);
    return syntax();
  }

  Result<NodePointer> number(std::string_view next) {
    const auto value = parse_double(next);
    if (!value || !std::isfinite(*value)) return syntax();
    at_ += next.size();
    auto node = std::make_shared<Node>();
    node->number = *value;
    return NodePointer(std::move(node));
  }

  Result<NodePointer> quoted(std::string_view next) {
    if (next.size() < 2 || next.back() != next.front()) return syntax();
    at_ += next.size();
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::text;
    node->text = next.substr(1, next.size() - 2);
    return NodePointer(std::move(node));
  }

  Result<NodePointer> named(std::string_view next) {
    auto node = std::make_shared<Node>();
    at_ += next.size();
    if (take("(")) {
      node->kind = Node::Kind::call;
      node->text = to_upper(next);
      const auto arity = arity_of(node->text);
      if (!arity) return invalid("Unsupported function '" + shorten(next, 40) + "'");
      node->parts = TRY(list(")"));
      if (node->parts.size() < arity->least || node->parts.size() > arity->most)
        return invalid("Invalid number of arguments of function " + node->text + ": " +
                       std::to_string(node->parts.size()));
      all_metrics = all_metrics || node->text == "METRICS";
    } else if (std::string upper = to_upper(next); is_word(upper) && upper == next) {
      node->kind = Node::Kind::text;
      node->text = std::move(upper);
    } else {
      node->kind = Node::Kind::id;
      node->text = next;
      ids.insert(node->text);
    }
    return NodePointer(std::move(node));
  }

  const std::string_view text_;
  size_t at_ = 0;
  int level_ = 0, chained_ = 0;
};

Result<Value> value_of(const Node& node, const Scope& scope, ValueBudget& budget) {
  switch (node.kind) {
    case Node::Kind::number:
      return Value::of(node.number);
    case Node::Kind::text:
      return invalid("'" + shorten(node.text, 40) + "' has no value");
    case Node::Kind::id: {
      Value value = TRY(scope.value_of(node.text));
      for (const Series& each : value.series) TRY(budget.use(each.points.size()));
      return value;
    }
    case Node::Kind::negation:
      return apply(Operator::multiply, Value::of(-1), TRY(value_of(*node.parts[0], scope, budget)),
                   budget);
    case Node::Kind::operation: {
      const Value left = TRY(value_of(*node.parts[0], scope, budget));
      return apply(node.operation, left, TRY(value_of(*node.parts[1], scope, budget)), budget);
    }
    case Node::Kind::call:
      break;
  }
  std::vector<Argument> arguments;
  for (const auto& part : node.parts) {
    Argument argument;
    if (part->kind == Node::Kind::text) {
      argument.text = part->text;
      argument.is_text = true;
    } else {
      argument.value = TRY(value_of(*part, scope, budget));
    }
    arguments.push_back(std::move(argument));
  }
  return call(node.text, std::move(arguments), scope, budget);
}

}  // namespace

Result<Expression> Expression::parse(std::string_view text) {
  if (trim(text).empty()) return invalid("The expression is empty");
  if (text.size() > kExpressionBytesMax)
    return invalid("The expression is longer than " + std::to_string(kExpressionBytesMax) +
                   " characters");
  Parser parser(text);
  Expression out;
  out.root_ = TRY(parser.parse());
  out.ids_ = std::move(parser.ids);
  out.uses_all_metrics_ = parser.all_metrics;
  return out;
}

Result<Value> Expression::evaluate(const Scope& scope) const {
  ValueBudget budget;
  return value_of(*root_, scope, budget);
}

}  // namespace trainyard::metric_math
