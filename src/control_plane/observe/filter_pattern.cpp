#include "observe/filter_pattern.hpp"

#include <string.h>

#include <algorithm>
#include <optional>

#include "base/json.hpp"
#include "base/text.hpp"
#include "observe/field_pattern.hpp"

namespace trainyard::observe {
namespace {

constexpr int kDepthMax = 32;  // nested parentheses; real patterns have two or three

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == ':' || c == '#' || c == '@' || uint8_t(c) >= 0x80;
}

// Finds the first place of a part, or npos. Linear, which std::string_view::find() is not: users
// choose both texts, and one thread routes the events of all.
size_t find_in(std::string_view text, std::string_view part) {
  if (part.empty()) return 0;
  if (part.size() > text.size()) return std::string_view::npos;
  const void* const found = ::memmem(text.data(), text.size(), part.data(), part.size());
  return found ? size_t(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

}  // namespace

// Before the first star and behind the last one, the texts are at fixed places. A part between two
// stars is best found as early as possible: each later place leaves less for the parts behind it.
bool matches_wildcards(std::string_view pattern, std::string_view text) {
  const size_t first = pattern.find('*');
  if (first == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, first))) return false;
  text.remove_prefix(first);
  const size_t last = pattern.rfind('*');
  const std::string_view tail = pattern.substr(last + 1);
  if (!text.ends_with(tail)) return false;
  text.remove_suffix(tail.size());
  for (const std::string_view part : split(pattern.substr(first, last - first), '*')) {
    const size_t at = find_in(text, part);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + part.size());
  }
  return true;
}

struct FilterPattern::Condition {
  enum class Operator {
    all_of,
    any_of,
    equal,
    not_equal,
    less,
    at_most,
    greater,
    at_least,
    is_null,
    is_true,
    is_false,
    not_exists
  };
  struct Step {
    std::string name;             // of a member,
    std::optional<size_t> index;  // or of an element,
    bool every = false;           // or all elements
  };
  Operator operation = Operator::all_of;
  std::vector<Condition> parts;  // all_of, any_of
  std::vector<Step> path;
  std::string selector;          // the path as it stands in the pattern
  std::string text;              // compared with the value
  std::optional<double> number;  // of `text`, if it is a number
  bool quoted = false;

  bool holds(const Json& document) const {
    if (operation == Operator::all_of)
      return std::ranges::all_of(parts,
                                 [&](const Condition& part) { return part.holds(document); });
    if (operation == Operator::any_of)
      return std::ranges::any_of(parts,
                                 [&](const Condition& part) { return part.holds(document); });
    std::vector<const Json*> found;
    find(document, 0, found);
    if (operation == Operator::not_exists) return found.empty();
    return std::ranges::any_of(found, [&](const Json* value) { return compare(*value); });
  }

  // Adds the first value of each path of this condition and its parts.
  void extract(const Json& document, std::map<std::string, std::string>& values) const {
    for (const Condition& part : parts) part.extract(document, values);
    std::vector<const Json*> found;
    if (!path.empty()) find(document, 0, found);
    if (!found.empty()) values.emplace(selector, string_or_dump(*found[0]));
  }

  void find(const Json& value, size_t depth, std::vector<const Json*>& found) const {
    if (depth == path.size()) return found.push_back(&value);
    const Step& step = path[depth];
    if (step.every) {
      if (value.is_array())
        for (const auto& element : value) find(element, depth + 1, found);
    } else if (step.index) {
      if (value.is_array() && *step.index < value.size())
        find(value[*step.index], depth + 1, found);
    } else if (value.is_object()) {
      if (const auto member = value.find(step.name); member != value.end())
        find(*member, depth + 1, found);
    }
  }

 private:
  bool equals(const Json& value) const {
    if (!quoted && text == "*") return true;  // it exists
    if (value.is_string()) return matches_wildcards(text, value.get_ref<const std::string&>());
    if (quoted) return false;
    if (value.is_number()) return number && value.get<double>() == *number;
    if (value.is_boolean()) return text == (value.get<bool>() ? "true" : "false");
    return false;
  }

  bool compare(const Json& value) const {
    switch (operation) {
      case Operator::equal:
        return equals(value);
      case Operator::not_equal:
        return !equals(value);
      case Operator::is_null:
        return value.is_null();
      case Operator::is_true:
        return value.is_boolean() && value.get<bool>();
      case Operator::is_false:
        return value.is_boolean() && !value.get<bool>();
      default:
        break;
    }
    if (!value.is_number() || !number) return false;
    const double have = value.get<double>();
    switch (operation) {
      case Operator::less:
        return have < *number;
      case Operator::at_most:
        return have <= *number;
      case Operator::greater:
        return have > *number;
      default:
        return have >= *number;
    }
  }
};

namespace {

using Condition = FilterPattern::Condition;
using Operator = Condition::Operator;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Condition> selector() {
    Condition condition;
    TRY(path(condition));
    if (at_ != text_.size()) return fault("the end of the pattern");
    return condition;
  }

  Result<Condition> json_pattern() {
    take("{");
    auto condition = TRY(any_of(0));
    if (!take("}")) return fault("'}' or an operator");
    skip_blanks();
    if (at_ != text_.size()) return fault("the end of the pattern");
    return condition;
  }

 private:
  Error fault(std::string_view wanted) const {
    return invalid("Invalid filter pattern: at character " + std::to_string(at_ + 1) +
                   ", expected " + std::string(wanted));
  }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  std::string_view take_name() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  // Takes a keyword of the pattern language, in any case.
  bool take_word(std::string_view word) {
    skip_blanks();
    const size_t begin = at_;
    if (equals_ignoring_case(take_name(), word)) return true;
    at_ = begin;
    return false;
  }

  Result<Condition> any_of(int depth) {
    if (depth > kDepthMax)
      return invalid("Invalid filter pattern: parentheses are nested too deeply");
    Condition any{.operation = Operator::any_of};
    do any.parts.push_back(TRY(all_of(depth)));
    while (take("||"));
    return any;
  }
  Result<Condition> all_of(int depth) {
    Condition all{.operation = Operator::all_of};
    do all.parts.push_back(TRY(one(depth)));
    while (take("&&"));
    return all;
  }
  Result<Condition> one(int depth) {
    if (!take("(")) return comparison();
    auto inner = TRY(any_of(depth + 1));
    if (!take(")")) return fault("')' or an operator");
    return inner;
  }

  Result<Condition> comparison() {
    Condition condition;
    TRY(path(condition));
    if (take_word("IS")) {
      if (take_word("NULL")) return condition.operation = Operator::is_null, condition;
      if (take_word("TRUE")) return condition.operation = Operator::is_true, condition;
      if (take_word("FALSE")) return condition.operation = Operator::is_false, condition;
      return fault("NULL, TRUE or FALSE");
    }
    if (take_word("NOT")) {
      if (take_word("EXISTS")) return condition.operation = Operator::not_exists, condition;
      return fault("EXISTS");
    }
    static constexpr std::pair<std::string_view, Operator> kOperators[] = {
        {"!=", Operator::not_equal}, {"<=", Operator::at_most}, {">=", Operator::at_least},
        {"=", Operator::equal},      {"<", Operator::less},     {">", Operator::greater}};
    for (const auto& [token, operation] : kOperators) {
      if (!take(token)) continue;
      condition.operation = operation;
      TRY(literal(condition));
      const bool ordered = operation != Operator::equal && operation != Operator::not_equal;
      if (ordered && !condition.number) return fault("a number before this position");
      return condition;
    }
    return fault("an operator");
  }

  Result<void> path(Condition& condition) {
    skip_blanks();
    const size_t begin = at_;
    TRY(steps_of(condition.path));
    condition.selector = text_.substr(begin, at_ - begin);
    return ok();
  }

  Result<void> steps_of(std::vector<Condition::Step>& steps) {
    if (!take("$")) return fault("a property, $.name");
    while (at_ < text_.size()) {
      if (text_[at_] == '.') {
        ++at_;
        const auto name = take_name();
        if (name.empty()) return fault("the name of a property");
        steps.push_back({.name = std::string(name)});
      } else if (text_[at_] == '[') {
        ++at_;
        if (take("*")) {
          steps.push_back({.every = true});
        } else if (take("'")) {
          const size_t end = text_.find('\'', at_);
          if (end == std::string_view::npos) return fault("a name that ends with '");
          steps.push_back({.name = std::string(text_.substr(at_, end - at_))});
          at_ = end + 1;
        } else {
          const auto index = parse_int(take_name());
          if (!index || *index < 0) return fault("an index, * or a name in ''");
          steps.push_back({.index = size_t(*index)});
        }
        if (!take("]")) return fault("']'");
      } else {
        break;
      }
    }
    if (steps.empty()) return fault("a property, $.name");
    return ok();
  }

  Result<void> literal(Condition& condition) {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '"') {
      condition.quoted = true;
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
        condition.text += text_[at_];
      }
      if (!take("\"")) return fault("a closing quotation mark");
      return ok();
    }
    if (at_ < text_.size() && text_[at_] == '%')
      return invalid("Invalid filter pattern: regular expressions (%..%) are not supported");
    const size_t begin = at_;
    while (at_ < text_.size() && (is_name(text_[at_]) || text_[at_] == '.' || text_[at_] == '*' ||
                                  text_[at_] == '+' || text_[at_] == '/'))
      ++at_;
    condition.text = text_.substr(begin, at_ - begin);
    if (condition.text.empty()) return fault("a value");
    if (const auto number = parse_double(condition.text)) condition.number = *number;
    return ok();
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<FilterPattern> FilterPattern::parse(std::string_view pattern) {
  if (pattern.size() > kPatternBytesMax)
    return invalid("Invalid filter pattern: longer than " + std::to_string(kPatternBytesMax) +
                   " characters");
  FilterPattern parsed;
  const auto text = trim(pattern);
  if (text == "*") return parsed;
  if (text.starts_with('{')) {
    parsed.condition_ = std::make_shared<const Condition>(TRY(Parser(text).json_pattern()));
    return parsed;
  }
  if (text.starts_with('[')) {
    parsed.fields_ = std::make_shared<const FieldPattern>(TRY(FieldPattern::parse(text)));
    return parsed;
  }
  for (size_t at = 0; at < text.size();) {
    if (is_blank(text[at])) {
      ++at;
      continue;
    }
    auto* terms = &parsed.required_;
    if (text[at] == '?') terms = &parsed.optional_;
    if (text[at] == '-') terms = &parsed.excluded_;
    if (terms != &parsed.required_) ++at;
    std::string term;
    if (at < text.size() && text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\' && at + 1 < text.size()) ++at;
        term += text[at];
      }
      if (at == text.size())
        return invalid("Invalid filter pattern: a quotation mark is not closed");
      ++at;
    } else {
      if (at < text.size() && text[at] == '%')
        return invalid("Invalid filter pattern: regular expressions (%..%) are not supported");
      while (at < text.size() && !is_blank(text[at])) term += text[at++];
    }
    if (!term.empty()) terms->push_back(std::move(term));
  }
  return parsed;
}

bool FilterPattern::matches(std::string_view message) const {
  if (fields_) return fields_->extract(message).has_value();
  if (condition_) {
    // Most lines of a job are not JSON, so they are not parsed.
    if (!trim(message).starts_with('{')) return false;
    const auto document = parse_json(message);
    return document && condition_->holds(*document);
  }
  const auto inside = [&](const std::string& term) {
    return find_in(message, term) != std::string_view::npos;
  };
  if (std::ranges::any_of(excluded_, inside)) return false;
  if (!required_.empty()) return std::ranges::all_of(required_, inside);
  return optional_.empty() || std::ranges::any_of(optional_, inside);
}

std::optional<std::map<std::string, std::string>> FilterPattern::extract(
    std::string_view message) const {
  if (fields_) return fields_->extract(message);
  std::map<std::string, std::string> values;
  if (!condition_) return matches(message) ? std::optional(values) : std::nullopt;
  if (!trim(message).starts_with('{')) return {};
  const auto document = parse_json(message);
  if (!document || !condition_->holds(*document)) return {};
  condition_->extract(*document, values);
  return values;
}

struct FilterMessage::Parsed {
  std::optional<Json> document;  // unset: the text is not a JSON object
};

FilterMessage::FilterMessage(std::string_view text) : text_(text) {}
FilterMessage::~FilterMessage() = default;

const FilterMessage::Parsed& FilterMessage::parsed() const {
  if (!parsed_) {
    auto parsed = std::make_unique<Parsed>();
    if (trim(text_).starts_with('{'))
      if (auto document = parse_json(text_)) parsed->document = *std::move(document);
    parsed_ = std::move(parsed);
  }
  return *parsed_;
}

Result<FilterSelector> FilterSelector::parse(std::string_view selector) {
  FilterSelector parsed;
  parsed.text_ = selector;
  if (selector.starts_with("$.") || selector.starts_with("$[")) {
    auto path = Parser(selector).selector();
    if (!path) return invalid("Invalid metric value: " + std::string(selector));
    parsed.path_ = std::make_shared<const Condition>(*std::move(path));
  } else if (selector.size() < 2 || !selector.starts_with('$') ||
             !std::ranges::all_of(selector.substr(1), is_name)) {
    return invalid("Invalid metric value: " + std::string(selector));
  }
  return parsed;
}

std::optional<std::string> FilterSelector::find(
    const FilterMessage& message, const std::map<std::string, std::string>& extracted) const {
  if (const auto found = extracted.find(text_); found != extracted.end()) return found->second;
  if (!path_) return {};
  const auto& document = message.parsed().document;
  if (!document) return {};
  std::vector<const Json*> found;
  path_->find(*document, 0, found);
  if (found.empty() || found[0]->is_null()) return {};
  return string_or_dump(*found[0]);
}

}  // namespace trainyard::observe
