#include "contract/hyperparameters.hpp"

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::contract {
namespace {

constexpr size_t kTextShown = 64;

}  // namespace

std::string in_quotes(std::string_view text) { return "'" + shorten(text, kTextShown) + "'"; }

std::string without_quotes(const std::string& text) {
  if (text.size() < 2 || text.front() != '"') return text;
  const auto value = parse_json(text);
  return value && value->is_string() ? value->get<std::string>() : text;
}

bool belongs_to_the_sdk(std::string_view name) {
  return name.starts_with("sagemaker_") || name == "_tuning_objective_metric";
}

Result<int64_t> parse_integer(const std::string& text, int64_t least, int64_t most) {
  const auto value = parse_int(text);
  if (!value) return invalid(in_quotes(text) + " is not of type 'integer'");
  if (*value < least)
    return invalid(std::to_string(*value) + " is less than the minimum of " +
                   std::to_string(least));
  if (*value > most)
    return invalid(std::to_string(*value) + " is greater than the maximum of " +
                   std::to_string(most));
  return *value;
}

}  // namespace trainyard::contract
