#include "policy/simulate.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/enum_table.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "policy/match.hpp"

namespace trainyard::policy {
namespace {

// A Scanner reads well-formed JSON and counts lines and columns.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  TextPosition position() const { return position_; }
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void take() {
    CHECK(at_ < text_.size(), "the document is well-formed");
    if (text_[at_] == '\n')
      position_ = {position_.line + 1, 1};
    else if ((uint8_t(text_[at_]) & 0xc0) != 0x80)
      ++position_.column;
    ++at_;
  }
  // Returns the JSON text of the value at the current position, and moves behind it.
  std::string_view skip_value() {
    skip_blanks();
    const size_t begin = at_;
    size_t depth = 0;
    do {
      const char c = peek();
      if (c == '"') {
        skip_string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      take();
    } while (depth > 0 || (at_ < text_.size() && in_scalar(begin)));
    return text_.substr(begin, at_ - begin);
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      take();
  }
  void skip_string() {
    take();
    for (; text_[at_] != '"'; take())
      if (text_[at_] == '\\') take();
    take();
  }
  // Returns whether a number or a word that began at `begin` continues.
  bool in_scalar(size_t begin) const {
    return std::string_view("{[\"").find(text_[begin]) == std::string_view::npos &&
           (std::isalnum(uint8_t(text_[at_])) ||
            std::string_view("+-.").find(text_[at_]) != std::string_view::npos);
  }

  const std::string_view text_;
  size_t at_ = 0;
  TextPosition position_;
};

TextSpan span_of_value(Scanner& scanner) {
  scanner.peek();
  const TextPosition begin = scanner.position();
  scanner.skip_value();
  return {begin, scanner.position()};
}

std::vector<TextSpan> spans_here(Scanner& scanner) {
  if (scanner.peek() != '[') return {span_of_value(scanner)};
  std::vector<TextSpan> spans;
  for (scanner.take(); scanner.peek() != ']';) {
    spans.push_back(span_of_value(scanner));
    if (scanner.peek() == ',') scanner.take();
  }
  return spans;
}

std::vector<const Policy*> borrow(const std::vector<NamedPolicy>& named) {
  std::vector<const Policy*> policies;
  for (const NamedPolicy& one : named) policies.push_back(one.policy);
  return policies;
}

void add_matched(const RequestView& view, const std::vector<NamedPolicy>& policies, Effect effect,
                 std::vector<MatchedStatement>& matched) {
  for (const NamedPolicy& one : policies) {
    const auto& statements = one.policy->statements();
    std::vector<TextSpan> spans;
    for (size_t i = 0; i < statements.size(); ++i) {
      if (statements[i].effect != effect ||
          match_statement(view, statements[i]) == PrincipalMatch::none)
        continue;
      if (spans.empty()) spans = statement_spans(one.policy->document());
      CHECK(spans.size() == statements.size(), "each statement has a position");
      matched.push_back({one.id, one.type, statements[i].sid, spans[i].begin, spans[i].end});
    }
  }
}

void add_missing_keys(const Request& request, const std::vector<NamedPolicy>& policies,
                      std::vector<std::string>& missing) {
  for (const NamedPolicy& one : policies)
    for (std::string& key : one.policy->context_keys())
      if (request.values.find(key).empty() && std::ranges::none_of(missing, [&](const auto& other) {
            return equals_ignoring_case(other, key);
          }))
        missing.push_back(std::move(key));
}

}  // namespace

std::vector<TextSpan> statement_spans(std::string_view document) {
  Scanner scanner(document);
  CHECK(scanner.peek() == '{', "a document is an object");
  scanner.take();
  while (scanner.peek() != '}') {
    const auto name = parse_json(scanner.skip_value());
    CHECK(name, "a member has a name");
    CHECK(scanner.peek() == ':', "a member has a value");
    scanner.take();
    if (*name == "Statement") return spans_here(scanner);
    scanner.skip_value();
    if (scanner.peek() == ',') scanner.take();
  }
  return {};
}

std::string_view decision_name(Verdict verdict) {
  static constexpr EnumTable<Verdict> kDecisions{"decision",
                                                 {{Verdict::allowed, "allowed"},
                                                  {Verdict::implicitly_denied, "implicitDeny"},
                                                  {Verdict::explicitly_denied, "explicitDeny"}}};
  return kDecisions.text(verdict);
}

Simulation simulate(const Request& request, const SimulatedPolicies& policies) {
  CHECK(policies.boundary.size() <= 1, "a principal has one boundary");
  Policies evaluated;
  evaluated.identity = borrow(policies.identity);
  evaluated.resource = borrow(policies.resource);
  if (!policies.boundary.empty()) evaluated.boundary = policies.boundary[0].policy;

  Simulation simulation{.decision = evaluate(request, evaluated)};
  const RequestView view(request);
  const Effect effect =
      simulation.decision.verdict == Verdict::explicitly_denied ? Effect::deny : Effect::allow;
  for (const auto* list : {&policies.identity, &policies.resource, &policies.boundary}) {
    add_matched(view, *list, effect, simulation.matched);
    add_missing_keys(request, *list, simulation.missing_keys);
  }
  if (evaluated.boundary) {
    Policies alone;
    alone.identity = {evaluated.boundary};
    simulation.allowed_by_boundary = evaluate(request, alone).verdict == Verdict::allowed;
  }
  return simulation;
}

}  // namespace trainyard::policy
