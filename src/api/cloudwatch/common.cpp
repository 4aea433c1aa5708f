#include "cloudwatch/common.hpp"

#include <algorithm>
#include <utility>

namespace trainyard::api::cloudwatch {
namespace {

template <class E, size_t count>
using Names = const std::pair<E, std::string_view> (&)[count];

template <class E, size_t count>
std::string_view name_in(Names<E, count> names, E value) {
  for (const auto& [each, name] : names)
    if (each == value) return name;
  return "";
}

template <class E, size_t count>
Result<E> value_in(Names<E, count> names, std::string_view text) {
  for (const auto& [each, name] : names)
    if (name == text) return each;
  return unknown_text(text, "value");
}

using alarms::Comparison;
using alarms::Missing;
using alarms::State;

constexpr std::pair<State, std::string_view> kStateNames[] = {
    {State::ok, "OK"}, {State::alarm, "ALARM"}, {State::insufficient_data, "INSUFFICIENT_DATA"}};
constexpr std::pair<Comparison, std::string_view> kComparisonNames[] = {
    {Comparison::greater_or_equal, "GreaterThanOrEqualToThreshold"},
    {Comparison::greater, "GreaterThanThreshold"},
    {Comparison::less, "LessThanThreshold"},
    {Comparison::less_or_equal, "LessThanOrEqualToThreshold"},
    {Comparison::outside_band, "LessThanLowerOrGreaterThanUpperThreshold"},
    {Comparison::below_band, "LessThanLowerThreshold"},
    {Comparison::above_band, "GreaterThanUpperThreshold"}};
constexpr std::pair<Missing, std::string_view> kMissingNames[] = {
    {Missing::missing, "missing"},
    {Missing::ignore, "ignore"},
    {Missing::breaching, "breaching"},
    {Missing::not_breaching, "notBreaching"}};

}  // namespace

std::string alarm_arn(const std::string& account, const alarms::AlarmKey& key) {
  return "arn:" + std::string(partition_of(key.region)) + ":cloudwatch:" + key.region + ":" +
         account + ":alarm:" + key.name;
}

std::string dashboard_arn(const Context& context, const std::string& name) {
  return "arn:" + std::string(partition_of(context.region)) +
         ":cloudwatch::" + context.principal.account + ":dashboard/" + name;
}

std::map<std::string, std::string> to_map(
    const std::optional<std::vector<shapes::cloudwatch::Dimension>>& dimensions) {
  std::map<std::string, std::string> map;
  if (dimensions)
    for (const auto& each : *dimensions) map[*each.name] = *each.value;
  return map;
}

Instant to_seconds_only(Instant at) { return std::chrono::floor<std::chrono::seconds>(at); }

bool is_period(int64_t seconds) {
  constexpr int64_t kShort[] = {1, 5, 10, 20, 30};
  return seconds > 0 &&
         (seconds % 60 == 0 || std::ranges::find(kShort, seconds) != std::end(kShort));
}

Failure validation_error(std::string message) {
  return {400, "ValidationError", std::move(message)};
}
Failure not_found_failure(std::string message) {
  return {404, "ResourceNotFound", std::move(message)};
}

std::string_view to_text(State state) { return name_in<State>(kStateNames, state); }
Result<State> parse_state(std::string_view text) { return value_in<State>(kStateNames, text); }
std::string_view to_text(Comparison comparison) {
  return name_in<Comparison>(kComparisonNames, comparison);
}
Result<Comparison> parse_comparison(std::string_view text) {
  return value_in<Comparison>(kComparisonNames, text);
}
std::string_view to_text(Missing missing) { return name_in<Missing>(kMissingNames, missing); }
Result<Missing> parse_missing(std::string_view text) {
  return value_in<Missing>(kMissingNames, text);
}

std::string offset_time_text(Instant at) {
  std::string text = to_iso8601(at);
  text.back() = '+';  // instead of the Z
  return text + "0000";
}

}  // namespace trainyard::api::cloudwatch
