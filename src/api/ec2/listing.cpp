#include "ec2/listing.hpp"

#include "base/text.hpp"
#include "policy/pattern.hpp"

namespace trainyard::api::ec2 {
namespace {

constexpr std::string_view kTokenPrefix = "after ";

Failure invalid_token(const std::string& token) {
  return ec2_failure("InvalidNextToken", "The token '" + shorten(token, 100) + "' is invalid");
}

// '*' and '?' as policy::matches has them; a backslash makes the next character literal.
std::string compiled(std::string_view value) {
  std::string out;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\' && i + 1 < value.size())
      out += value[++i];
    else
      out += value[i] == '*' ? policy::kAnyMany : value[i] == '?' ? policy::kAnyOne : value[i];
  }
  return out;
}

}  // namespace

Failure invalid_filter(std::string_view name) {
  return invalid_parameter_value("The filter '" + shorten(name, 256) + "' is invalid");
}

Outcome<Done> check_filters(const FilterList& filters,
                            const std::function<bool(std::string_view)>& known) {
  size_t values = 0;
  if (!filters) return Done{};
  for (const aws::Filter& filter : *filters) {
    if (!filter.name || !known(*filter.name)) return invalid_filter(filter.name.value_or("null"));
    if (!filter.values) continue;
    values += filter.values->size();
    if (values > kFilterValuesMax)
      return ec2_failure("FilterLimitExceeded",
                         "The maximum number of filter values specified on a single call is " +
                             std::to_string(kFilterValuesMax));
    for (const std::string& value : *filter.values)
      if (value.size() > kFilterValueBytesMax)
        return invalid_value(
            value, *filter.name,
            "A filter value has at most " + std::to_string(kFilterValueBytesMax) + " bytes.");
  }
  return Done{};
}

bool matches_filter(const aws::Filter& filter, const Texts& values) {
  if (!filter.values) return false;
  return std::ranges::any_of(*filter.values, [&](const std::string& wanted) {
    const std::string pattern = compiled(wanted);
    return std::ranges::any_of(
        values, [&](const std::string& value) { return policy::matches(pattern, value); });
  });
}

Texts tag_values(const std::vector<aws::Tag>& tags, std::string_view filter) {
  Texts found;
  for (const aws::Tag& tag : tags) {
    if (filter == "tag-key")
      found.push_back(*tag.key);
    else if (filter.substr(std::string_view("tag:").size()) == *tag.key)
      found.push_back(*tag.value);
  }
  return found;
}

Outcome<std::string> page_after(const std::optional<std::string>& token) {
  if (!token) return std::string();
  const auto text = from_base64(*token);
  if (!text || !text->starts_with(kTokenPrefix)) return invalid_token(*token);
  return text->substr(kTokenPrefix.size());
}
std::string token_after(const std::string& key) {
  return to_base64(std::string(kTokenPrefix) + key);
}

}  // namespace trainyard::api::ec2
