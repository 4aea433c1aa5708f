#include "observe/field_pattern.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::observe {
namespace {

Error pattern_fault(const std::string& why) { return invalid("Invalid filter pattern: " + why); }

// Splits at separators that stand outside quotation marks.
std::vector<std::string_view> split_outside_quotes(std::string_view text,
                                                   std::string_view separator) {
  std::vector<std::string_view> parts;
  bool quoted = false;
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') quoted = !quoted;
    if (quoted || !text.substr(at).starts_with(separator)) continue;
    parts.push_back(text.substr(begin, at - begin));
    at += separator.size() - 1;
    begin = at + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// The fields of a message: "a b" and [a b] are one, without their marks.
std::vector<std::string_view> fields_of(std::string_view message) {
  std::vector<std::string_view> fields;
  for (size_t at = 0; at < message.size();) {
    if (message[at] == ' ' || message[at] == '\t' || message[at] == '\n') {
      ++at;
      continue;
    }
    const char close = message[at] == '"' ? '"' : message[at] == '[' ? ']' : ' ';
    const size_t begin = close == ' ' ? at : at + 1;
    size_t end = message.find(close, begin);
    if (end == std::string_view::npos && close != ' ') end = message.find(' ', begin);
    end = std::min(end, message.size());
    fields.push_back(message.substr(begin, end - begin));
    at = end + 1;
  }
  return fields;
}

}  // namespace

bool FieldPattern::Condition::holds(std::string_view value) const {
  if (comparison == Comparison::equal || comparison == Comparison::not_equal) {
    const auto own = parse_double(value);
    const bool equal = number && own ? *number == *own : matches_wildcards(text, value);
    return equal == (comparison == Comparison::equal);
  }
  const auto own = parse_double(value);
  if (!own || !number) return false;
  switch (comparison) {
    case Comparison::less:
      return *own < *number;
    case Comparison::at_most:
      return *own <= *number;
    case Comparison::greater:
      return *own > *number;
    default:
      return *own >= *number;
  }
}

bool FieldPattern::Field::holds(std::string_view value) const {
  return any_of_all.empty() || std::ranges::any_of(any_of_all, [&](const auto& all) {
           return std::ranges::all_of(all,
                                      [&](const Condition& each) { return each.holds(value); });
         });
}

Result<FieldPattern::Field> FieldPattern::parse_field(std::string_view text) {
  static constexpr std::pair<std::string_view, Comparison> kComparisons[] = {
      {"!=", Comparison::not_equal}, {"<=", Comparison::at_most}, {">=", Comparison::at_least},
      {"=", Comparison::equal},      {"<", Comparison::less},     {">", Comparison::greater}};
  Field field;
  text = trim(text);
  if (text == "...") {
    field.any_number = true;
    return field;
  }
  if (text.find_first_of("=<>") == std::string_view::npos) {
    if (text.find_first_of(" \"") != std::string_view::npos)
      return pattern_fault("invalid field name: " + std::string(text));
    field.name = text;
    return field;
  }
  for (const std::string_view any : split_outside_quotes(text, "||")) {
    std::vector<Condition> all;
    for (const std::string_view each : split_outside_quotes(any, "&&")) {
      const size_t at = each.find_first_of("!<>=");
      const std::string_view name = trim(each.substr(0, at));
      if (at == std::string_view::npos || (!field.name.empty() && name != field.name))
        return pattern_fault("each condition of a field must begin with its name: " +
                             std::string(trim(each)));
      field.name = name;
      const auto* found = std::ranges::find_if(kComparisons, [&](const auto& comparison) {
        return each.substr(at).starts_with(comparison.first);
      });
      if (found == std::end(kComparisons)) return pattern_fault("unknown operator");
      std::string_view value = trim(each.substr(at + found->first.size()));
      const bool quoted = value.size() > 1 && value.starts_with('"') && value.ends_with('"');
      if (quoted) value = value.substr(1, value.size() - 2);
      if (value.starts_with('%'))
        return pattern_fault("regular expressions (%..%) are not supported");
      Condition condition{found->second, std::string(value), {}};
      if (const auto number = parse_double(value); number && !quoted) condition.number = *number;
      const bool ordered =
          found->second != Comparison::equal && found->second != Comparison::not_equal;
      if (ordered && !condition.number) return pattern_fault("a comparison needs a number");
      all.push_back(std::move(condition));
    }
    field.any_of_all.push_back(std::move(all));
  }
  return field;
}

Result<FieldPattern> FieldPattern::parse(std::string_view pattern) {
  pattern = trim(pattern);
  if (pattern.size() < 2 || !pattern.starts_with('[') || !pattern.ends_with(']'))
    return pattern_fault("']' is missing");
  FieldPattern parsed;
  for (const std::string_view text :
       split_outside_quotes(pattern.substr(1, pattern.size() - 2), ",")) {
    if (parsed.fields_.size() >= kPatternFieldsMax) return pattern_fault("too many fields");
    parsed.fields_.push_back(TRY(parse_field(text)));
    if (parsed.fields_.back().any_number &&
        std::ranges::count(parsed.fields_, true, &Field::any_number) > 1)
      return pattern_fault("'...' may be used once");
  }
  return parsed;
}

std::optional<std::map<std::string, std::string>> FieldPattern::extract(
    std::string_view message) const {
  const auto values = fields_of(message);
  const bool open = std::ranges::count(fields_, true, &Field::any_number) > 0;
  const size_t named = fields_.size() - (open ? 1 : 0);
  if (open ? values.size() < named : values.size() != named) return {};
  std::map<std::string, std::string> found;
  size_t at = 0;
  for (const Field& field : fields_) {
    const size_t count = field.any_number ? values.size() - named : 1;
    for (size_t i = 0; i < count; ++i, ++at) {
      if (!field.holds(values[at])) return {};
      const std::string name = field.name.empty() ? std::to_string(at + 1) : field.name;
      found.insert_or_assign("$" + name, std::string(values[at]));
    }
  }
  return found;
}

}  // namespace trainyard::observe
