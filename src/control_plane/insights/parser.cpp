#include "insights/parser.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.hpp"

namespace trainyard::insights {
namespace {

constexpr std::string_view kReserved[] = {"and", "or", "not", "like", "in",
                                          "as",  "by", "asc", "desc"};
constexpr std::pair<std::string_view, AggregateKind> kAggregates[] = {
    {"count", AggregateKind::count},
    {"count_distinct", AggregateKind::count_distinct},
    {"sum", AggregateKind::sum},
    {"avg", AggregateKind::average},
    {"min", AggregateKind::minimum},
    {"max", AggregateKind::maximum},
    {"pct", AggregateKind::percentile},
    {"percentile", AggregateKind::percentile},
    {"stddev", AggregateKind::deviation},
    {"earliest", AggregateKind::earliest},
    {"latest", AggregateKind::latest},
    {"sortsfirst", AggregateKind::sorts_first},
    {"sortslast", AggregateKind::sorts_last},
};

const std::pair<std::string_view, AggregateKind>* find_aggregate(std::string_view name) {
  const auto found = std::ranges::find_if(
      kAggregates, [&](const auto& each) { return equals_ignoring_case(each.first, name); });
  return found == std::end(kAggregates) ? nullptr : &*found;
}

// Thrown nowhere: a fault is kept, and every function returns null or false after the first.
class Parser {
 public:
  Parser(std::string_view text, const std::vector<Token>& tokens) : text_(text), tokens_(tokens) {}

  std::variant<Query, QueryFault> run() {
    Query query;
    take("|");  // queries that a program puts together may begin with it
    do {
      if (query.commands.size() >= kCommandsMax) {
        fail("the query has more than " + std::to_string(kCommandsMax) + " commands");
        break;
      }
      command(query);
    } while (!fault_ && take("|"));
    if (!fault_ && now().kind != Token::Kind::end) unexpected();
    if (fault_) return *std::move(fault_);
    return {std::move(query)};
  }

 private:
  const Token& now() const { return tokens_[at_]; }
  const Token& after() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }

  void fail(std::string message) {
    if (!fault_) fault_ = {now().begin, std::max(now().end, now().begin), std::move(message)};
  }
  void unexpected() {
    if (now().kind == Token::Kind::end) return fail("unexpected end of the query");
    fail("unexpected symbol found " +
         shorten(text_.substr(now().begin, now().end - now().begin), 64));
  }

  bool at_symbol(std::string_view symbol) const {
    return now().kind == Token::Kind::symbol && now().text == symbol;
  }
  bool take(std::string_view symbol) {
    if (fault_ || !at_symbol(symbol)) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view symbol) {
    if (!take(symbol)) unexpected();
  }
  bool at_word(std::string_view word) const {
    return now().kind == Token::Kind::word && equals_ignoring_case(now().text, word);
  }
  bool take_word(std::string_view word) {
    if (fault_ || !at_word(word)) return false;
    ++at_;
    return true;
  }
  static bool is_reserved(const Token& token) {
    return token.kind == Token::Kind::word &&
           std::ranges::any_of(kReserved, [&](std::string_view word) {
             return equals_ignoring_case(token.text, word);
           });
  }

  std::string name() {
    const bool word = now().kind == Token::Kind::word && !is_reserved(now());
    if (!word && now().kind != Token::Kind::quoted && now().kind != Token::Kind::text)
      return unexpected(), "";
    return tokens_[at_++].text;
  }

  // -- commands

  void command(Query& query) {
    if (take_word("fields")) {
      query.commands.emplace_back(FieldsCommand{columns()});
    } else if (take_word("display")) {
      query.commands.emplace_back(DisplayCommand{columns()});
    } else if (take_word("filter") || take_word("where")) {
      query.commands.emplace_back(FilterCommand{expression(0)});
    } else if (take_word("parse")) {
      parse(query);
    } else if (take_word("stats")) {
      stats(query);
    } else if (take_word("sort") || take_word("order")) {
      sort(query);
    } else if (take_word("limit") || take_word("head")) {
      limit(query);
    } else if (take_word("dedup")) {
      DedupCommand dedup;
      do dedup.keys.push_back(expression(0));
      while (take(",") && dedup.keys.size() < kColumnsMax);
      query.commands.emplace_back(std::move(dedup));
    } else {
      unexpected();
    }
  }

  Column column() {
    const size_t begin = now().begin;
    Column column{expression(0), ""};
    if (take_word("as")) {
      column.name = name();
    } else if (!fault_) {
      column.name = column.expression->kind == Expression::Kind::field
                        ? column.expression->field
                        : std::string(text_.substr(begin, tokens_[at_ - 1].end - begin));
    }
    return column;
  }
  std::vector<Column> columns() {
    std::vector<Column> columns;
    do {
      if (columns.size() >= kColumnsMax) fail("a command has too many fields");
      columns.push_back(column());
    } while (take(","));
    return columns;
  }

  void parse(Query& query) {
    ParseCommand parse;
    if (now().kind == Token::Kind::word || now().kind == Token::Kind::quoted) {
      Expression field{.kind = Expression::Kind::field};
      field.field = name();
      parse.of = std::make_unique<const Expression>(std::move(field));
    }
    const bool regex = now().kind == Token::Kind::regex;
    if (!regex && now().kind != Token::Kind::text) return unexpected();
    auto pattern = regex ? Pattern::regex(now().text) : Pattern::glob(now().text);
    if (!pattern) return fail(pattern.error().message);
    parse.pattern = *std::move(pattern);
    ++at_;
    parse.names = parse.pattern->names();
    if (take_word("as")) {
      size_t count = 0;
      do {
        std::string given = name();
        if (count >= parse.names.size())
          return fail("parse has more names than its pattern has groups");
        parse.names[count++] = std::move(given);
      } while (take(","));
      if (count != parse.names.size())
        return fail("parse has fewer names than its pattern has groups");
    }
    if (!fault_ && (parse.names.empty() || std::ranges::count(parse.names, "") != 0))
      return fail(regex ? "each group of the regular expression needs a name"
                        : "each * of the pattern needs a name after as");
    query.commands.emplace_back(std::move(parse));
  }

  void stats(Query& query) {
    StatsCommand stats;
    do {
      if (stats.aggregates.size() >= kColumnsMax) fail("stats has too many functions");
      stats.aggregates.push_back(aggregate());
    } while (take(","));
    if (take_word("by")) stats.groups = columns();
    query.commands.emplace_back(std::move(stats));
  }

  Aggregate aggregate() {
    Aggregate aggregate;
    const size_t begin = now().begin;
    const auto* found = now().kind == Token::Kind::word ? find_aggregate(now().text) : nullptr;
    if (!found || after().kind != Token::Kind::symbol || after().text != "(")
      return unexpected(), std::move(aggregate);
    aggregate.kind = found->second;
    at_ += 2;
    const bool counts = aggregate.kind == AggregateKind::count;
    if (counts && (at_symbol("*") || at_symbol(")"))) {
      take("*");
    } else {
      aggregate.of = expression(0);
    }
    if (aggregate.kind == AggregateKind::percentile) {
      expect(",");
      if (!fault_ && (now().kind != Token::Kind::number || now().number > 100)) {
        fail("pct needs a number from 0 to 100");
      } else if (!fault_) {
        aggregate.percentile = tokens_[at_++].number;
      }
    }
    expect(")");
    if (take_word("as"))
      aggregate.name = name();
    else if (!fault_)
      aggregate.name = std::string(text_.substr(begin, tokens_[at_ - 1].end - begin));
    return aggregate;
  }

  void sort(Query& query) {
    take_word("by");
    SortCommand sort;
    do {
      if (sort.keys.size() >= kColumnsMax) fail("sort has too many fields");
      SortCommand::Key key{expression(0), false};
      if (take_word("desc"))
        key.descending = true;
      else
        take_word("asc");
      sort.keys.push_back(std::move(key));
    } while (take(","));
    query.commands.emplace_back(std::move(sort));
  }

  void limit(Query& query) {
    const double rows = now().number;
    if (now().kind != Token::Kind::number) return unexpected();
    if (rows < 1 || rows > double(kRowsMax) || rows != std::floor(rows))
      return fail("limit takes a whole number from 1 to " + std::to_string(kRowsMax));
    ++at_;
    query.commands.emplace_back(LimitCommand{size_t(rows)});
  }

  // -- expressions, by precedence

  static ExpressionPointer made(Expression expression) {
    return std::make_unique<const Expression>(std::move(expression));
  }
  static ExpressionPointer operation(Operator which, ExpressionPointer a,
                                     ExpressionPointer b = nullptr) {
    Expression expression{.kind = Expression::Kind::operation, .operation = which};
    expression.parts.push_back(std::move(a));
    if (b) expression.parts.push_back(std::move(b));
    return made(std::move(expression));
  }

  // Never null: a constant stands for what a fault has left out.
  ExpressionPointer expression(int depth) {
    if (depth > kDepthMax) fail("expressions are nested too deeply");
    if (fault_) return made({});
    auto left = conjunction(depth);
    while (take_word("or"))
      left = operation(Operator::or_else, std::move(left), conjunction(depth));
    return left;
  }
  ExpressionPointer conjunction(int depth) {
    auto left = negation(depth);
    while (take_word("and")) left = operation(Operator::and_also, std::move(left), negation(depth));
    return left;
  }
  ExpressionPointer negation(int depth) {
    if (depth > kDepthMax) fail("expressions are nested too deeply");
    if (take_word("not")) return operation(Operator::negate_condition, negation(depth + 1));
    return comparison(depth);
  }

  ExpressionPointer comparison(int depth) {
    auto left = sum(depth);
    static constexpr std::pair<std::string_view, Operator> kComparisons[] = {
        {"=", Operator::equal},    {"!=", Operator::not_equal}, {"<", Operator::less},
        {"<=", Operator::at_most}, {">", Operator::greater},    {">=", Operator::at_least}};
    for (const auto& [symbol, which] : kComparisons)
      if (take(symbol)) return operation(which, std::move(left), sum(depth));
    if (take("=~") || take_word("like")) return like(Operator::like, std::move(left));
    if (take_word("in")) return list(Operator::in_list, std::move(left), depth);
    if (at_word("not") && after().kind == Token::Kind::word) {
      if (equals_ignoring_case(after().text, "like")) {
        at_ += 2;
        return like(Operator::not_like, std::move(left));
      }
      if (equals_ignoring_case(after().text, "in")) {
        at_ += 2;
        return list(Operator::not_in_list, std::move(left), depth);
      }
    }
    return left;
  }

  ExpressionPointer like(Operator which, ExpressionPointer left) {
    if (fault_) return left;
    Expression expression{.kind = Expression::Kind::operation, .operation = which};
    expression.parts.push_back(std::move(left));
    if (now().kind == Token::Kind::text) {
      expression.pattern = Pattern::literal(now().text);
    } else if (now().kind == Token::Kind::regex) {
      auto pattern = Pattern::regex(now().text);
      if (!pattern) return fail(pattern.error().message), made({});
      expression.pattern = *std::move(pattern);
    } else {
      return unexpected(), made({});
    }
    ++at_;
    return made(std::move(expression));
  }

  ExpressionPointer list(Operator which, ExpressionPointer left, int depth) {
    Expression expression{.kind = Expression::Kind::operation, .operation = which};
    expression.parts.push_back(std::move(left));
    expect("[");
    while (!fault_ && !at_symbol("]")) {
      if (expression.parts.size() > kColumnsMax) fail("a list has too many values");
      expression.parts.push_back(sum(depth));
      if (!take(",")) break;
    }
    expect("]");
    return made(std::move(expression));
  }

  ExpressionPointer sum(int depth) {
    auto left = product(depth);
    while (!fault_ && (at_symbol("+") || at_symbol("-"))) {
      const Operator which = tokens_[at_++].text == "+" ? Operator::add : Operator::subtract;
      left = operation(which, std::move(left), product(depth));
    }
    return left;
  }
  ExpressionPointer product(int depth) {
    auto left = power(depth);
    while (!fault_ && (at_symbol("*") || at_symbol("/") || at_symbol("%"))) {
      const char symbol = tokens_[at_++].text[0];
      const Operator which = symbol == '*'   ? Operator::multiply
                             : symbol == '/' ? Operator::divide
                                             : Operator::remainder;
      left = operation(which, std::move(left), power(depth));
    }
    return left;
  }
  ExpressionPointer power(int depth) {
    if (depth > kDepthMax) fail("expressions are nested too deeply");
    auto left = sign(depth);
    if (take("^")) return operation(Operator::power, std::move(left), power(depth + 1));
    return left;
  }
  ExpressionPointer sign(int depth) {
    if (depth > kDepthMax) fail("expressions are nested too deeply");
    if (take("-")) return operation(Operator::negate_number, sign(depth + 1));
    return operand(depth);
  }

  ExpressionPointer operand(int depth) {
    if (fault_) return made({});
    if (take("(")) {
      auto inner = expression(depth + 1);
      expect(")");
      return inner;
    }
    const Token& token = now();
    switch (token.kind) {
      case Token::Kind::number:
      case Token::Kind::duration:
        ++at_;
        return made({.constant = Value::of_number(token.number)});
      case Token::Kind::text:
        ++at_;
        return made({.constant = Value::of_text(token.text)});
      case Token::Kind::quoted:
        ++at_;
        return made({.kind = Expression::Kind::field, .field = token.text});
      case Token::Kind::word:
        break;
      default:
        return unexpected(), made({});
    }
    if (is_reserved(token)) return unexpected(), made({});
    if (after().kind == Token::Kind::symbol && after().text == "(") return call(depth);
    ++at_;
    return made({.kind = Expression::Kind::field, .field = token.text});
  }

  ExpressionPointer call(int depth) {
    Expression expression{.kind = Expression::Kind::call, .function = find_function(now().text)};
    if (!expression.function)
      return fail((find_aggregate(now().text) ? "a function of stats is used in another command: "
                                              : "unknown function: ") +
                  shorten(now().text, 64)),
             made({});
    const size_t begin = at_;
    at_ += 2;
    while (!fault_ && !at_symbol(")")) {
      if (expression.parts.size() >= kArgumentsMax) fail("a function has too many arguments");
      expression.parts.push_back(this->expression(depth + 1));
      if (!take(",")) break;
    }
    expect(")");
    const size_t count = expression.parts.size();
    if (!fault_ && (count < expression.function->arguments_min ||
                    count > expression.function->arguments_max)) {
      at_ = begin;
      fail("wrong number of arguments of " + std::string(expression.function->name));
    }
    return made(std::move(expression));
  }

  const std::string_view text_;
  const std::vector<Token>& tokens_;
  size_t at_ = 0;
  std::optional<QueryFault> fault_;
};

}  // namespace

std::variant<Query, QueryFault> parse_query(std::string_view text) {
  std::vector<Token> tokens;
  QueryFault fault;
  if (!tokenize(text, tokens, fault)) return fault;
  return Parser(text, tokens).run();
}

std::string describe_fault(std::string_view text, const QueryFault& fault) {
  const std::string_view before = text.substr(0, std::min(fault.begin, text.size()));
  const size_t newline = before.rfind('\n');
  return fault.message + " at line " + std::to_string(1 + std::ranges::count(before, '\n')) +
         " and position " +
         std::to_string(1 + before.size() - (newline == std::string_view::npos ? 0 : newline + 1));
}

}  // namespace trainyard::insights
