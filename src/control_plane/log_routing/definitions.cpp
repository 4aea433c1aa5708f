#include "log_routing/definitions.hpp"

#include <cmath>

#include "base/json.hpp"
#include "base/json_record.hpp"
#include "base/text.hpp"
#include "observe/filter_pattern.hpp"

namespace trainyard::log_routing {
namespace {

constexpr auto kMetricFilter =
    json_record<MetricFilter>("metric filter", [](auto& side, auto& filter) {
      side("pattern", filter.pattern);
      side("namespace", filter.metric_namespace);
      side("name", filter.metric_name);
      side("value", filter.value);
      side.if_set("default_value", filter.default_value);
      side.if_set("dimensions", filter.dimensions);
      side("unit", filter.unit);
      side("created", filter.created);
    });

constexpr auto kSubscriptionFilter =
    json_record<SubscriptionFilter>("subscription filter", [](auto& side, auto& filter) {
      side("pattern", filter.pattern);
      side("destination_arn", filter.destination_arn);
      side.if_set("target", filter.target);
      side.if_set("role_arn", filter.role_arn);
      side("distribution", filter.distribution);
      side("created", filter.created);
    });

constexpr auto kLogDestination =
    json_record<LogDestination>("destination of logs", [](auto& side, auto& destination) {
      side("target_arn", destination.target_arn);
      side("role_arn", destination.role_arn);
      side.if_set("access_policy", destination.access_policy);
      side.if_set("tags", destination.tags);
      side("created", destination.created);
    });

}  // namespace

std::string MetricFilter::text() const { return dump(kMetricFilter.write(*this)); }

Result<MetricFilter> MetricFilter::from(std::string_view text) {
  return kMetricFilter.read(TRY(parse_json(text)));
}

Result<void> MetricFilter::check() const {
  TRY(observe::FilterPattern::parse(pattern));
  if (value.starts_with('$')) {
    TRY(observe::FilterSelector::parse(value));
  } else if (const auto number = parse_double(value); !number || !std::isfinite(*number)) {
    return invalid("Invalid metric value: " + value);
  }
  if (dimensions.size() > kDimensionsMax)
    return invalid("A metric filter can have at most " + std::to_string(kDimensionsMax) +
                   " dimensions.");
  if (default_value && !dimensions.empty())
    return invalid(
        "Invalid metric transformation: dimensions and default value are mutually "
        "exclusive properties.");
  if (default_value && !std::isfinite(*default_value))
    return invalid("Invalid metric transformation: the default value is not a number.");
  for (const auto& [name, selector] : dimensions)
    TRY(observe::FilterSelector::parse(selector).in("dimension " + name));
  return ok();
}

std::string SubscriptionFilter::text() const { return dump(kSubscriptionFilter.write(*this)); }

Result<SubscriptionFilter> SubscriptionFilter::from(std::string_view text) {
  return kSubscriptionFilter.read(TRY(parse_json(text)));
}

std::string LogDestination::text() const { return dump(kLogDestination.write(*this)); }

Result<LogDestination> LogDestination::from(std::string_view text) {
  return kLogDestination.read(TRY(parse_json(text)));
}

}  // namespace trainyard::log_routing
