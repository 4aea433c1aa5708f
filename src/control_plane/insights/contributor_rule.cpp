#include "insights/contributor_rule.hpp"

#include <algorithm>
#include <cmath>

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::insights {
namespace {

constexpr const char* kSchema = "CloudWatchLogRule";

Error fault(const std::string& what) { return invalid("Invalid rule definition: " + what); }

// The texts of a list of texts and numbers.
Result<std::vector<std::string>> texts_of(const Json& json, const char* name, size_t most) {
  std::vector<std::string> out;
  const Json list = json.is_array() ? json : Json::array({json});
  for (const Json& each : list) {
    if (!each.is_string() && !each.is_number() && !each.is_boolean())
      return fault(std::string(name) + " must be texts or numbers.");
    out.push_back(each.is_string() ? each.get<std::string>() : dump(each));
  }
  if (out.empty() || out.size() > most)
    return fault(std::string(name) + " must have between 1 and " + std::to_string(most) +
                 " elements.");
  return out;
}

}  // namespace

// Reads the members of a definition into a rule.
struct ContributorRule::Reader {
  const Json& json;
  ContributorRule& rule;
  std::map<std::string, std::string> aliases;  // name -> selector, of Fields

  Result<void> read() {
    TRY(read_schema());
    TRY(read_format());
    if (!json.contains("Contribution") || !json["Contribution"].is_object())
      return fault("Contribution must be an object.");
    const Json& contribution = json["Contribution"];
    if (!contribution.contains("Keys")) return fault("Contribution.Keys must be given.");
    rule.key_labels_ = TRY(texts_of(contribution["Keys"], "Contribution.Keys", kRuleKeysMax));
    for (const std::string& key : rule.key_labels_) rule.keys_.push_back(TRY(selector(key)));
    if (contribution.contains("Filters")) {
      const Json& filters = contribution["Filters"];
      if (!filters.is_array() || filters.size() > kRuleFiltersMax)
        return fault("Contribution.Filters must be a list of at most " +
                     std::to_string(kRuleFiltersMax) + " filters.");
      for (const Json& filter : filters) rule.filters_.push_back(TRY(read_filter(filter)));
    }
    return read_value(contribution);
  }

  Result<void> read_schema() {
    const Json schema = json.value("Schema", Json());
    const Json name = schema.is_object() ? schema.value("Name", Json()) : schema;
    if (name != kSchema) return fault(std::string("Schema must be ") + kSchema + ", version 1.");
    if (schema.is_object() && schema.value("Version", Json()) != 1)
      return fault("Schema.Version must be 1.");
    if (!json.contains("LogGroupNames")) return fault("LogGroupNames must be given.");
    rule.groups_ = TRY(texts_of(json["LogGroupNames"], "LogGroupNames", kRuleGroupsMax));
    return ok();
  }

  // CLF becomes a pattern of fields: [f1, f2, ...].
  Result<void> read_format() {
    const Json format = json.value("LogFormat", Json());
    if (format != "JSON" && format != "CLF") return fault("LogFormat must be JSON or CLF.");
    const Json filter = json.value("Filter", Json());
    if (!filter.is_null() && !filter.is_string()) return fault("Filter must be a filter pattern.");
    if (filter.is_string())
      rule.pattern_ = TRY(observe::FilterPattern::parse(filter.get<std::string>()));
    if (format != "CLF") return ok();
    size_t last = 0;
    const Json fields = json.value("Fields", Json::object());
    if (!fields.is_object()) return fault("Fields must be an object.");
    for (const auto& [number, name] : fields.items()) {
      const auto index = parse_int(number);
      if (!index || *index < 1 || *index > int64_t(kRuleFieldsMax) || !name.is_string())
        return fault("Fields must be names by numbers from 1 to " + std::to_string(kRuleFieldsMax) +
                     ".");
      aliases[name.get<std::string>()] = "$f" + number;
      last = std::max(last, size_t(*index));
    }
    if (rule.pattern_) return last == 0 ? ok() : fault("Fields and Filter exclude each other.");
    std::string pattern = "[";
    for (size_t i = 1; i <= last; ++i) pattern += "f" + std::to_string(i) + ", ";
    rule.pattern_ = TRY(observe::FilterPattern::parse(pattern + "...]"));
    return ok();
  }

  Result<observe::FilterSelector> selector(const std::string& text) {
    const auto alias = aliases.find(text);
    auto found = observe::FilterSelector::parse(alias != aliases.end()  ? alias->second
                                                : text.starts_with('$') ? text
                                                                        : "$" + text);
    if (!found) return fault("unknown field " + shorten(text, 100) + ".");
    return *std::move(found);
  }

  Result<void> read_value(const Json& contribution) {
    const Json value = contribution.value("ValueOf", Json());
    const Json aggregate = json.value("AggregateOn", Json());
    if (!aggregate.is_null() && aggregate != "Count" && aggregate != "Sum")
      return fault("AggregateOn must be Count or Sum.");
    if (!value.is_null() && !value.is_string()) return fault("ValueOf must be a text.");
    const bool counted = value.is_null() || value == "Count" || aggregate == "Count";
    if (counted && aggregate == "Sum") return fault("AggregateOn Sum needs ValueOf.");
    if (!counted) rule.value_ = TRY(selector(value.get<std::string>()));
    return ok();
  }

  Result<Filter> read_filter(const Json& json) {
    if (!json.is_object() || json.size() != 2 || !json.contains("Match") ||
        !json["Match"].is_string())
      return fault("a filter must have Match and one condition.");
    using Test = Filter::Test;
    auto match = TRY(selector(json["Match"].get<std::string>()));
    Filter filter{.selector = std::move(match)};
    for (const auto& [name, value] : json.items()) {
      if (name == "Match") continue;
      if (name == "In" || name == "EqualTo" || name == "NotIn" || name == "NotEqualTo" ||
          name == "StartsWith") {
        filter.texts = TRY(texts_of(value, name.c_str(), 10));
        filter.test = name == "StartsWith"      ? Test::starts_with
                      : name.starts_with("Not") ? Test::not_in
                                                : Test::in;
      } else if ((name == "GreaterThan" || name == "LessThan") && value.is_number()) {
        filter.number = value.get<double>();
        filter.test = name == "LessThan" ? Test::less : Test::greater;
      } else if (name == "IsPresent" && value.is_boolean()) {
        filter.present = value.get<bool>();
        filter.test = Test::present;
      } else {
        return fault("unknown condition " + shorten(name, 100) + ".");
      }
    }
    return filter;
  }
};

bool ContributorRule::Filter::holds(const std::optional<std::string>& value) const {
  if (test == Test::present) return value.has_value() == present;
  if (!value) return test == Test::not_in;
  if (test == Test::greater || test == Test::less) {
    const auto found = parse_double(*value);
    return found && (test == Test::greater ? *found > number : *found < number);
  }
  if (test == Test::starts_with)
    return std::ranges::any_of(texts, [&](const auto& each) { return value->starts_with(each); });
  return (std::ranges::find(texts, *value) != texts.end()) == (test == Test::in);
}

Result<ContributorRule> ContributorRule::parse(std::string_view text) {
  if (text.size() > kRuleBytesMax)
    return fault("it has more than " + std::to_string(kRuleBytesMax) + " bytes.");
  const auto json = parse_json(text);
  if (!json || !json->is_object()) return fault("it is not a JSON object.");
  ContributorRule rule;
  Reader reader{*json, rule, {}};
  TRY(reader.read());
  return rule;
}

std::optional<Contribution> ContributorRule::of(std::string_view message) const {
  std::map<std::string, std::string> extracted;
  if (pattern_) {
    auto found = pattern_->extract(message);
    if (!found) return {};
    extracted = *std::move(found);
  }
  const observe::FilterMessage parsed(message);
  for (const Filter& filter : filters_)
    if (!filter.holds(filter.selector.find(parsed, extracted))) return {};
  Contribution out;
  for (const auto& key : keys_) {
    auto value = key.find(parsed, extracted);
    if (!value) return {};
    out.keys.push_back(*std::move(value));
  }
  if (!value_) return out;
  const auto text = value_->find(parsed, extracted);
  const auto number = text ? parse_double(*text) : Result<double>(invalid(""));
  if (!number || !std::isfinite(*number)) return {};
  out.value = *number;
  return out;
}

}  // namespace trainyard::insights
