#include <cmath>

#include "agent/output/metric_files.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::agent {

std::optional<wire::MetricPoint> parse_metric_line(std::string_view line, Instant now) {
  if (line.size() > kMetricLineBytesMax) return {};
  const auto json = parse_json(std::string(line));
  if (!json || !json->is_object()) return {};
  const auto name = string_at(*json, "MetricName");
  const auto value = double_at(*json, "Value");
  if (!name || name->empty() || name->size() > kMetricNameBytesMax || !value ||
      !std::isfinite(*value))
    return {};
  wire::MetricPoint point{to_utf8(*name), now, *value, false};
  const auto seconds = double_at(*json, "Timestamp");
  // Checked in seconds first: a large value has no whole number of milliseconds.
  if (seconds && *seconds >= to_seconds(now - kMetricAgeMax) &&
      *seconds <= to_seconds(now + kMetricAheadMax))
    point.at = from_milliseconds(std::llround(*seconds * 1000));
  return point;
}

}  // namespace trainyard::agent
