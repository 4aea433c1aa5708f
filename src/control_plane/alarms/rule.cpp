#include "alarms/rule.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/text.hpp"

namespace trainyard::alarms {

struct Rule::Node {
  enum class Kind { constant, negation, both, either, state };
  Kind kind = Kind::constant;
  bool value = false;
  State state = State::ok;
  std::string alarm;
  std::vector<std::shared_ptr<const Node>> parts;
};

namespace {

using Node = Rule::Node;
using NodePointer = std::shared_ptr<const Node>;

constexpr std::pair<std::string_view, State> kRuleStates[] = {
    {"ALARM", State::alarm}, {"OK", State::ok}, {"INSUFFICIENT_DATA", State::insufficient_data}};

class RuleParser {
 public:
  explicit RuleParser(std::string_view text) : text_(text) {}

  Result<NodePointer> parse() {
    auto root = TRY(either());
    if (!rest().empty()) return syntax();
    return root;
  }

  std::set<std::string> alarms;

 private:
  Error syntax() {
    return invalid(rest().empty() ? "the rule ends too early"
                                  : "unexpected '" + shorten(rest(), 40) + "'");
  }

  std::string_view rest() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return text_.substr(at_);
  }

  bool take(char what) {
    if (!rest().starts_with(what)) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) {
    const std::string_view next = rest();
    if (!next.starts_with(word)) return false;
    const char after = next.size() > word.size() ? next[word.size()] : ' ';
    if (std::isalnum(static_cast<unsigned char>(after)) || after == '_') return false;
    at_ += word.size();
    return true;
  }

  Result<NodePointer> chain(std::string_view word, Node::Kind kind,
                            Result<NodePointer> (RuleParser::*next)()) {
    auto first = TRY((this->*next)());
    if (!take_word(word)) return first;
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->parts = {std::move(first)};
    do {
      node->parts.push_back(TRY((this->*next)()));
    } while (take_word(word));
    return NodePointer(std::move(node));
  }

  Result<NodePointer> either() { return chain("OR", Node::Kind::either, &RuleParser::both); }
  Result<NodePointer> both() { return chain("AND", Node::Kind::both, &RuleParser::one); }

  Result<NodePointer> one() {
    if (++level_ > kRuleLevelsMax)
      return invalid("the rule has more than " + std::to_string(kRuleLevelsMax) + " nested levels");
    auto node = TRY(single());
    --level_;
    return node;
  }

  Result<NodePointer> single() {
    auto node = std::make_shared<Node>();
    if (take_word("NOT")) {
      node->kind = Node::Kind::negation;
      node->parts = {TRY(one())};
      return NodePointer(std::move(node));
    }
    if (take('(')) {
      auto inner = TRY(either());
      if (!take(')')) return syntax();
      return inner;
    }
    for (const bool value : {true, false})
      if (take_word(value ? "TRUE" : "FALSE")) {
        node->value = value;
        return NodePointer(std::move(node));
      }
    for (const auto& [word, state] : kRuleStates) {
      if (!take_word(word)) continue;
      node->kind = Node::Kind::state;
      node->state = state;
      node->alarm = TRY(alarm());
      alarms.insert(node->alarm);
      if (alarms.size() > kRuleAlarmsMax)
        return invalid("the rule has more than " + std::to_string(kRuleAlarmsMax) + " alarms");
      return NodePointer(std::move(node));
    }
    return syntax();
  }

  Result<std::string> alarm() {
    if (!take('(')) return syntax();
    const std::string_view next = rest();
    const bool quoted = next.starts_with('"') || next.starts_with('\'');
    const size_t end = quoted ? next.find(next[0], 1) : next.find(')');
    if (end == std::string_view::npos) return syntax();
    const std::string_view name = trim(quoted ? next.substr(1, end - 1) : next.substr(0, end));
    if (name.empty()) return syntax();
    at_ += quoted ? end + 1 : end;
    if (!take(')')) return syntax();
    return alarm_name_in(name);
  }

  const std::string_view text_;
  size_t at_ = 0;
  int level_ = 0;
};

bool holds_at(const Node& node, const std::function<State(const std::string&)>& state_of) {
  const auto holds = [&](const NodePointer& part) { return holds_at(*part, state_of); };
  switch (node.kind) {
    case Node::Kind::constant:
      return node.value;
    case Node::Kind::negation:
      return !holds(node.parts[0]);
    case Node::Kind::both:
      return std::ranges::all_of(node.parts, holds);
    case Node::Kind::either:
      return std::ranges::any_of(node.parts, holds);
    case Node::Kind::state:
      return state_of(node.alarm) == node.state;
  }
  return false;
}

}  // namespace

Result<Rule> Rule::parse(std::string_view text) {
  if (text.size() > kRuleBytesMax)
    return invalid("the rule is longer than " + std::to_string(kRuleBytesMax) + " characters");
  RuleParser parser(text);
  Rule rule;
  rule.root_ = TRY(parser.parse());
  rule.alarms_ = std::move(parser.alarms);
  return rule;
}

bool Rule::holds(const std::function<State(const std::string& name)>& state_of) const {
  return holds_at(*root_, state_of);
}

std::string alarm_name_in(std::string_view name_or_arn) {
  if (!name_or_arn.starts_with("arn:")) return std::string(name_or_arn);
  const size_t at = name_or_arn.find(":alarm:");
  return std::string(at == std::string_view::npos ? name_or_arn : name_or_arn.substr(at + 7));
}

std::string find_cycle(const std::string& name, const std::set<std::string>& children,
                       const std::map<std::string, std::set<std::string>>& children_of) {
  // For each alarm: the alarm from which it was reached. The search starts at `name`.
  std::map<std::string, std::string> reached_from;
  std::vector<std::string> open;
  for (const std::string& each : children)
    if (reached_from.emplace(each, name).second) open.push_back(each);
  while (!open.empty()) {
    const std::string present = std::move(open.back());
    open.pop_back();
    if (present == name) {
      std::string path = name;
      std::string at = reached_from.at(name);
      for (; at != name; at = reached_from.at(at)) path = at + " -> " + path;
      return name + " -> " + path;
    }
    const auto next = children_of.find(present);
    if (next == children_of.end()) continue;
    for (const std::string& each : next->second)
      if (reached_from.emplace(each, present).second) open.push_back(each);
  }
  return "";
}

}  // namespace trainyard::alarms
